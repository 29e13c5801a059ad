//! Functions that touch no buffer of their own. The library may move the bytes of other calls
//! inside.

use crate::libraries::mpi::calls::Meaning::Nothing;

wrappers! {
    "MPI_Ibarrier" [
        MPI_Ibarrier C (a b),
        mpi_ibarrier_ Fortran (a b c),
    ] Nothing;
    "MPI_Probe" [
        MPI_Probe C (a b c d),
        mpi_probe_ Fortran (a b c d e),
    ] Nothing;
    "MPI_Iprobe" [
        MPI_Iprobe C (a b c d e),
        mpi_iprobe_ Fortran (a b c d e f),
    ] Nothing;
    "MPI_Mprobe" [
        MPI_Mprobe C (a b c d e),
        mpi_mprobe_ Fortran (a b c d e f),
    ] Nothing;
    "MPI_Improbe" [
        MPI_Improbe C (a b c d e f),
        mpi_improbe_ Fortran (a b c d e f g),
    ] Nothing;
    "MPI_Cancel" [
        MPI_Cancel C (a),
        mpi_cancel_ Fortran (a b),
    ] Nothing;
    "MPI_Win_start" [
        MPI_Win_start C (a b c),
        mpi_win_start_ Fortran (a b c d),
    ] Nothing;
    "MPI_Win_post" [
        MPI_Win_post C (a b c),
        mpi_win_post_ Fortran (a b c d),
    ] Nothing;
    "MPI_Win_wait" [
        MPI_Win_wait C (a),
        mpi_win_wait_ Fortran (a b),
    ] Nothing;
    "MPI_Win_test" [
        MPI_Win_test C (a b),
        mpi_win_test_ Fortran (a b c),
    ] Nothing;
    "MPI_Win_lock" [
        MPI_Win_lock C (a b c d),
        mpi_win_lock_ Fortran (a b c d e),
    ] Nothing;
    "MPI_Win_lock_all" [
        MPI_Win_lock_all C (a b),
        mpi_win_lock_all_ Fortran (a b c),
    ] Nothing;
    "MPI_Win_sync" [
        MPI_Win_sync C (a),
        mpi_win_sync_ Fortran (a b),
    ] Nothing;
}
