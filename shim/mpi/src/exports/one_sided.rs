//! One-sided functions and what completes them.

use crate::calls::{
    Meaning::{Tells, Touches},
    Says::{Target, Window, WindowAt},
    Until::{Epoch, Request},
};
use crate::effects;

wrappers! {
    "MPI_Put" [
        MPI_Put C (a b c d e f g h),
        MPI_Put_c LargeCount (a b c d e f g h),
        mpi_put_ Fortran (a b c d e f g h i),
        mpi_put_f08_ Fortran (a b c d e f g h i),
    ] Touches(effects::put, Epoch(3, 7));
    "MPI_Get" [
        MPI_Get C (a b c d e f g h),
        MPI_Get_c LargeCount (a b c d e f g h),
        mpi_get_ Fortran (a b c d e f g h i),
        mpi_get_f08_ Fortran (a b c d e f g h i),
    ] Touches(effects::get, Epoch(3, 7));
    "MPI_Accumulate" [
        MPI_Accumulate C (a b c d e f g h i),
        MPI_Accumulate_c LargeCount (a b c d e f g h i),
        mpi_accumulate_ Fortran (a b c d e f g h i j),
        mpi_accumulate_f08_ Fortran (a b c d e f g h i j),
    ] Touches(effects::put, Epoch(3, 8));
    "MPI_Get_accumulate" [
        MPI_Get_accumulate C (a b c d e f g h i j k l),
        MPI_Get_accumulate_c LargeCount (a b c d e f g h i j k l),
        mpi_get_accumulate_ Fortran (a b c d e f g h i j k l m),
        mpi_get_accumulate_f08_ Fortran (a b c d e f g h i j k l m),
    ] Touches(effects::get_accumulate, Epoch(6, 11));
    "MPI_Fetch_and_op" [
        MPI_Fetch_and_op C (a b c d e f g),
        mpi_fetch_and_op_ Fortran (a b c d e f g h),
        mpi_fetch_and_op_f08_ Fortran (a b c d e f g h),
    ] Touches(effects::fetch_and_op, Epoch(3, 6));
    "MPI_Compare_and_swap" [
        MPI_Compare_and_swap C (a b c d e f g),
        mpi_compare_and_swap_ Fortran (a b c d e f g h),
        mpi_compare_and_swap_f08_ Fortran (a b c d e f g h),
    ] Touches(effects::compare_and_swap, Epoch(4, 6));
    "MPI_Rput" [
        MPI_Rput C (a b c d e f g h i),
        MPI_Rput_c LargeCount (a b c d e f g h i),
        mpi_rput_ Fortran (a b c d e f g h i j),
        mpi_rput_f08_ Fortran (a b c d e f g h i j),
    ] Touches(effects::put, Request(8));
    "MPI_Rget" [
        MPI_Rget C (a b c d e f g h i),
        MPI_Rget_c LargeCount (a b c d e f g h i),
        mpi_rget_ Fortran (a b c d e f g h i j),
        mpi_rget_f08_ Fortran (a b c d e f g h i j),
    ] Touches(effects::get, Request(8));
    "MPI_Raccumulate" [
        MPI_Raccumulate C (a b c d e f g h i j),
        MPI_Raccumulate_c LargeCount (a b c d e f g h i j),
        mpi_raccumulate_ Fortran (a b c d e f g h i j k),
        mpi_raccumulate_f08_ Fortran (a b c d e f g h i j k),
    ] Touches(effects::put, Request(9));
    "MPI_Rget_accumulate" [
        MPI_Rget_accumulate C (a b c d e f g h i j k l m),
        MPI_Rget_accumulate_c LargeCount (a b c d e f g h i j k l m),
        mpi_rget_accumulate_ Fortran (a b c d e f g h i j k l m n),
        mpi_rget_accumulate_f08_ Fortran (a b c d e f g h i j k l m n),
    ] Touches(effects::get_accumulate, Request(12));
    "MPI_Win_fence" [
        MPI_Win_fence C (a b),
        mpi_win_fence_ Fortran (a b c),
        mpi_win_fence_f08_ Fortran (a b c),
    ] Tells(Window(1));
    "MPI_Win_complete" [
        MPI_Win_complete C (a),
        mpi_win_complete_ Fortran (a b),
        mpi_win_complete_f08_ Fortran (a b),
    ] Tells(Window(0));
    "MPI_Win_unlock" [
        MPI_Win_unlock C (a b),
        mpi_win_unlock_ Fortran (a b c),
        mpi_win_unlock_f08_ Fortran (a b c),
    ] Tells(Target(0, 1));
    "MPI_Win_unlock_all" [
        MPI_Win_unlock_all C (a),
        mpi_win_unlock_all_ Fortran (a b),
        mpi_win_unlock_all_f08_ Fortran (a b),
    ] Tells(Window(0));
    "MPI_Win_flush" [
        MPI_Win_flush C (a b),
        mpi_win_flush_ Fortran (a b c),
        mpi_win_flush_f08_ Fortran (a b c),
    ] Tells(Target(0, 1));
    "MPI_Win_flush_local" [
        MPI_Win_flush_local C (a b),
        mpi_win_flush_local_ Fortran (a b c),
        mpi_win_flush_local_f08_ Fortran (a b c),
    ] Tells(Target(0, 1));
    "MPI_Win_flush_all" [
        MPI_Win_flush_all C (a),
        mpi_win_flush_all_ Fortran (a b),
        mpi_win_flush_all_f08_ Fortran (a b),
    ] Tells(Window(0));
    "MPI_Win_flush_local_all" [
        MPI_Win_flush_local_all C (a),
        mpi_win_flush_local_all_ Fortran (a b),
        mpi_win_flush_local_all_f08_ Fortran (a b),
    ] Tells(Window(0));
    "MPI_Win_free" [
        MPI_Win_free C (a),
        mpi_win_free_ Fortran (a b),
        mpi_win_free_f08_ Fortran (a b),
    ] Tells(WindowAt(0));
}
