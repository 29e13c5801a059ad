//! Waiting for requests, testing, starting and freeing them.

use crate::calls::{Meaning::Tells, Says};

wrappers! {
    "MPI_Wait" [
        MPI_Wait C (a b),
        mpi_wait_ Fortran (a b c),
        mpi_wait_f08_ Fortran (a b c),
    ] Tells(Says::Complete(0));
    "MPI_Test" [
        MPI_Test C (a b c),
        mpi_test_ Fortran (a b c d),
        mpi_test_f08_ Fortran (a b c d),
    ] Tells(Says::CompleteIf(0, 1));
    "MPI_Request_get_status" [
        MPI_Request_get_status C (a b c),
        mpi_request_get_status_ Fortran (a b c d),
        mpi_request_get_status_f08_ Fortran (a b c d),
    ] Tells(Says::SeenIf(0, 1));
    "MPI_Waitall" [
        MPI_Waitall C (a b c),
        mpi_waitall_ Fortran (a b c d),
        mpi_waitall_f08_ Fortran (a b c d),
    ] Tells(Says::All(0, 1));
    "MPI_Testall" [
        MPI_Testall C (a b c d),
        mpi_testall_ Fortran (a b c d e),
        mpi_testall_f08_ Fortran (a b c d e),
    ] Tells(Says::AllIf(0, 1, 2));
    "MPI_Waitany" [
        MPI_Waitany C (a b c d),
        mpi_waitany_ Fortran (a b c d e),
        mpi_waitany_f08_ Fortran (a b c d e),
    ] Tells(Says::Any(0, 1, 2));
    "MPI_Testany" [
        MPI_Testany C (a b c d e),
        mpi_testany_ Fortran (a b c d e f),
        mpi_testany_f08_ Fortran (a b c d e f),
    ] Tells(Says::AnyIf(0, 1, 2, 3));
    "MPI_Waitsome" [
        MPI_Waitsome C (a b c d e),
        mpi_waitsome_ Fortran (a b c d e f),
        mpi_waitsome_f08_ Fortran (a b c d e f),
    ] Tells(Says::Some(0, 1, 2, 3));
    "MPI_Testsome" [
        MPI_Testsome C (a b c d e),
        mpi_testsome_ Fortran (a b c d e f),
        mpi_testsome_f08_ Fortran (a b c d e f),
    ] Tells(Says::Some(0, 1, 2, 3));
    "MPI_Request_free" [
        MPI_Request_free C (a),
        mpi_request_free_ Fortran (a b),
        mpi_request_free_f08_ Fortran (a b),
    ] Tells(Says::Freed(0));
    "MPI_Start" [
        MPI_Start C (a),
        mpi_start_ Fortran (a b),
        mpi_start_f08_ Fortran (a b),
    ] Tells(Says::Starts(0));
    "MPI_Startall" [
        MPI_Startall C (a b),
        mpi_startall_ Fortran (a b c),
        mpi_startall_f08_ Fortran (a b c),
    ] Tells(Says::StartsAll(0, 1));
    "MPI_Request_get_status_all" [
        MPI_Request_get_status_all C (a b c d),
        mpi_request_get_status_all_ Fortran (a b c d e),
        mpi_request_get_status_all_f08_ Fortran (a b c d e),
    ] Tells(Says::SeenAllIf(0, 1, 2));
    "MPI_Request_get_status_any" [
        MPI_Request_get_status_any C (a b c d e),
        mpi_request_get_status_any_ Fortran (a b c d e f),
        mpi_request_get_status_any_f08_ Fortran (a b c d e f),
    ] Tells(Says::SeenAnyIf(0, 1, 2, 3));
    "MPI_Request_get_status_some" [
        MPI_Request_get_status_some C (a b c d e),
        mpi_request_get_status_some_ Fortran (a b c d e f),
        mpi_request_get_status_some_f08_ Fortran (a b c d e f),
    ] Tells(Says::SeenSome(0, 1, 2, 3));
}
