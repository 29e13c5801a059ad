//! Files (MPI-IO): reading, writing, non-blocking and in two halves.

use crate::calls::{
    Meaning::{Tells, Touches},
    Says::Second,
    Until::{Request, Return, Split},
};
use crate::effects;

wrappers! {
    "MPI_File_read" [
        MPI_File_read C (a b c d e),
        MPI_File_read_c LargeCount (a b c d e),
        mpi_file_read_ Fortran (a b c d e f),
        mpi_file_read_f08_ Fortran (a b c d e f),
    ] Touches(effects::file_read, Return);
    "MPI_File_iread" [
        MPI_File_iread C (a b c d e),
        MPI_File_iread_c LargeCount (a b c d e),
        mpi_file_iread_ Fortran (a b c d e f),
        mpi_file_iread_f08_ Fortran (a b c d e f),
    ] Touches(effects::file_read, Request(4));
    "MPI_File_read_all" [
        MPI_File_read_all C (a b c d e),
        MPI_File_read_all_c LargeCount (a b c d e),
        mpi_file_read_all_ Fortran (a b c d e f),
        mpi_file_read_all_f08_ Fortran (a b c d e f),
    ] Touches(effects::file_read, Return);
    "MPI_File_iread_all" [
        MPI_File_iread_all C (a b c d e),
        MPI_File_iread_all_c LargeCount (a b c d e),
        mpi_file_iread_all_ Fortran (a b c d e f),
        mpi_file_iread_all_f08_ Fortran (a b c d e f),
    ] Touches(effects::file_read, Request(4));
    "MPI_File_read_all_begin" [
        MPI_File_read_all_begin C (a b c d),
        MPI_File_read_all_begin_c LargeCount (a b c d),
        mpi_file_read_all_begin_ Fortran (a b c d e),
        mpi_file_read_all_begin_f08_ Fortran (a b c d e),
    ] Touches(effects::file_read, Split(0));
    "MPI_File_read_all_end" [
        MPI_File_read_all_end C (a b c),
        mpi_file_read_all_end_ Fortran (a b c d),
        mpi_file_read_all_end_f08_ Fortran (a b c d),
    ] Tells(Second(0));
    "MPI_File_read_at" [
        MPI_File_read_at C (a b c d e f),
        MPI_File_read_at_c LargeCount (a b c d e f),
        mpi_file_read_at_ Fortran (a b c d e f g),
        mpi_file_read_at_f08_ Fortran (a b c d e f g),
    ] Touches(effects::file_read_at, Return);
    "MPI_File_iread_at" [
        MPI_File_iread_at C (a b c d e f),
        MPI_File_iread_at_c LargeCount (a b c d e f),
        mpi_file_iread_at_ Fortran (a b c d e f g),
        mpi_file_iread_at_f08_ Fortran (a b c d e f g),
    ] Touches(effects::file_read_at, Request(5));
    "MPI_File_read_at_all" [
        MPI_File_read_at_all C (a b c d e f),
        MPI_File_read_at_all_c LargeCount (a b c d e f),
        mpi_file_read_at_all_ Fortran (a b c d e f g),
        mpi_file_read_at_all_f08_ Fortran (a b c d e f g),
    ] Touches(effects::file_read_at, Return);
    "MPI_File_iread_at_all" [
        MPI_File_iread_at_all C (a b c d e f),
        MPI_File_iread_at_all_c LargeCount (a b c d e f),
        mpi_file_iread_at_all_ Fortran (a b c d e f g),
        mpi_file_iread_at_all_f08_ Fortran (a b c d e f g),
    ] Touches(effects::file_read_at, Request(5));
    "MPI_File_read_at_all_begin" [
        MPI_File_read_at_all_begin C (a b c d e),
        MPI_File_read_at_all_begin_c LargeCount (a b c d e),
        mpi_file_read_at_all_begin_ Fortran (a b c d e f),
        mpi_file_read_at_all_begin_f08_ Fortran (a b c d e f),
    ] Touches(effects::file_read_at, Split(0));
    "MPI_File_read_at_all_end" [
        MPI_File_read_at_all_end C (a b c),
        mpi_file_read_at_all_end_ Fortran (a b c d),
        mpi_file_read_at_all_end_f08_ Fortran (a b c d),
    ] Tells(Second(0));
    "MPI_File_read_shared" [
        MPI_File_read_shared C (a b c d e),
        MPI_File_read_shared_c LargeCount (a b c d e),
        mpi_file_read_shared_ Fortran (a b c d e f),
        mpi_file_read_shared_f08_ Fortran (a b c d e f),
    ] Touches(effects::file_read, Return);
    "MPI_File_iread_shared" [
        MPI_File_iread_shared C (a b c d e),
        MPI_File_iread_shared_c LargeCount (a b c d e),
        mpi_file_iread_shared_ Fortran (a b c d e f),
        mpi_file_iread_shared_f08_ Fortran (a b c d e f),
    ] Touches(effects::file_read, Request(4));
    "MPI_File_read_ordered" [
        MPI_File_read_ordered C (a b c d e),
        MPI_File_read_ordered_c LargeCount (a b c d e),
        mpi_file_read_ordered_ Fortran (a b c d e f),
        mpi_file_read_ordered_f08_ Fortran (a b c d e f),
    ] Touches(effects::file_read, Return);
    "MPI_File_read_ordered_begin" [
        MPI_File_read_ordered_begin C (a b c d),
        MPI_File_read_ordered_begin_c LargeCount (a b c d),
        mpi_file_read_ordered_begin_ Fortran (a b c d e),
        mpi_file_read_ordered_begin_f08_ Fortran (a b c d e),
    ] Touches(effects::file_read, Split(0));
    "MPI_File_read_ordered_end" [
        MPI_File_read_ordered_end C (a b c),
        mpi_file_read_ordered_end_ Fortran (a b c d),
        mpi_file_read_ordered_end_f08_ Fortran (a b c d),
    ] Tells(Second(0));
    "MPI_File_write" [
        MPI_File_write C (a b c d e),
        MPI_File_write_c LargeCount (a b c d e),
        mpi_file_write_ Fortran (a b c d e f),
        mpi_file_write_f08_ Fortran (a b c d e f),
    ] Touches(effects::file_write, Return);
    "MPI_File_iwrite" [
        MPI_File_iwrite C (a b c d e),
        MPI_File_iwrite_c LargeCount (a b c d e),
        mpi_file_iwrite_ Fortran (a b c d e f),
        mpi_file_iwrite_f08_ Fortran (a b c d e f),
    ] Touches(effects::file_write, Request(4));
    "MPI_File_write_all" [
        MPI_File_write_all C (a b c d e),
        MPI_File_write_all_c LargeCount (a b c d e),
        mpi_file_write_all_ Fortran (a b c d e f),
        mpi_file_write_all_f08_ Fortran (a b c d e f),
    ] Touches(effects::file_write, Return);
    "MPI_File_iwrite_all" [
        MPI_File_iwrite_all C (a b c d e),
        MPI_File_iwrite_all_c LargeCount (a b c d e),
        mpi_file_iwrite_all_ Fortran (a b c d e f),
        mpi_file_iwrite_all_f08_ Fortran (a b c d e f),
    ] Touches(effects::file_write, Request(4));
    "MPI_File_write_all_begin" [
        MPI_File_write_all_begin C (a b c d),
        MPI_File_write_all_begin_c LargeCount (a b c d),
        mpi_file_write_all_begin_ Fortran (a b c d e),
        mpi_file_write_all_begin_f08_ Fortran (a b c d e),
    ] Touches(effects::file_write, Split(0));
    "MPI_File_write_all_end" [
        MPI_File_write_all_end C (a b c),
        mpi_file_write_all_end_ Fortran (a b c d),
        mpi_file_write_all_end_f08_ Fortran (a b c d),
    ] Tells(Second(0));
    "MPI_File_write_at" [
        MPI_File_write_at C (a b c d e f),
        MPI_File_write_at_c LargeCount (a b c d e f),
        mpi_file_write_at_ Fortran (a b c d e f g),
        mpi_file_write_at_f08_ Fortran (a b c d e f g),
    ] Touches(effects::file_write_at, Return);
    "MPI_File_iwrite_at" [
        MPI_File_iwrite_at C (a b c d e f),
        MPI_File_iwrite_at_c LargeCount (a b c d e f),
        mpi_file_iwrite_at_ Fortran (a b c d e f g),
        mpi_file_iwrite_at_f08_ Fortran (a b c d e f g),
    ] Touches(effects::file_write_at, Request(5));
    "MPI_File_write_at_all" [
        MPI_File_write_at_all C (a b c d e f),
        MPI_File_write_at_all_c LargeCount (a b c d e f),
        mpi_file_write_at_all_ Fortran (a b c d e f g),
        mpi_file_write_at_all_f08_ Fortran (a b c d e f g),
    ] Touches(effects::file_write_at, Return);
    "MPI_File_iwrite_at_all" [
        MPI_File_iwrite_at_all C (a b c d e f),
        MPI_File_iwrite_at_all_c LargeCount (a b c d e f),
        mpi_file_iwrite_at_all_ Fortran (a b c d e f g),
        mpi_file_iwrite_at_all_f08_ Fortran (a b c d e f g),
    ] Touches(effects::file_write_at, Request(5));
    "MPI_File_write_at_all_begin" [
        MPI_File_write_at_all_begin C (a b c d e),
        MPI_File_write_at_all_begin_c LargeCount (a b c d e),
        mpi_file_write_at_all_begin_ Fortran (a b c d e f),
        mpi_file_write_at_all_begin_f08_ Fortran (a b c d e f),
    ] Touches(effects::file_write_at, Split(0));
    "MPI_File_write_at_all_end" [
        MPI_File_write_at_all_end C (a b c),
        mpi_file_write_at_all_end_ Fortran (a b c d),
        mpi_file_write_at_all_end_f08_ Fortran (a b c d),
    ] Tells(Second(0));
    "MPI_File_write_shared" [
        MPI_File_write_shared C (a b c d e),
        MPI_File_write_shared_c LargeCount (a b c d e),
        mpi_file_write_shared_ Fortran (a b c d e f),
        mpi_file_write_shared_f08_ Fortran (a b c d e f),
    ] Touches(effects::file_write, Return);
    "MPI_File_iwrite_shared" [
        MPI_File_iwrite_shared C (a b c d e),
        MPI_File_iwrite_shared_c LargeCount (a b c d e),
        mpi_file_iwrite_shared_ Fortran (a b c d e f),
        mpi_file_iwrite_shared_f08_ Fortran (a b c d e f),
    ] Touches(effects::file_write, Request(4));
    "MPI_File_write_ordered" [
        MPI_File_write_ordered C (a b c d e),
        MPI_File_write_ordered_c LargeCount (a b c d e),
        mpi_file_write_ordered_ Fortran (a b c d e f),
        mpi_file_write_ordered_f08_ Fortran (a b c d e f),
    ] Touches(effects::file_write, Return);
    "MPI_File_write_ordered_begin" [
        MPI_File_write_ordered_begin C (a b c d),
        MPI_File_write_ordered_begin_c LargeCount (a b c d),
        mpi_file_write_ordered_begin_ Fortran (a b c d e),
        mpi_file_write_ordered_begin_f08_ Fortran (a b c d e),
    ] Touches(effects::file_write, Split(0));
    "MPI_File_write_ordered_end" [
        MPI_File_write_ordered_end C (a b c),
        mpi_file_write_ordered_end_ Fortran (a b c d),
        mpi_file_write_ordered_end_f08_ Fortran (a b c d),
    ] Tells(Second(0));
}
