//! Partitioned communication: MPI 4.1, chapter 4.

use crate::calls::{
    Meaning::{Partitions, Tells},
    Says::{ArrivedIf, Ready, ReadyList, ReadyRange},
};

wrappers! {
    "MPI_Psend_init" [
        MPI_Psend_init C (a b c d e f g h i),
        mpi_psend_init_ Fortran (a b c d e f g h i j),
        mpi_psend_init_f08_ Fortran (a b c d e f g h i j),
    ] Partitions(false, 8);
    "MPI_Precv_init" [
        MPI_Precv_init C (a b c d e f g h i),
        mpi_precv_init_ Fortran (a b c d e f g h i j),
        mpi_precv_init_f08_ Fortran (a b c d e f g h i j),
    ] Partitions(true, 8);
    "MPI_Pready" [
        MPI_Pready C (a b),
        mpi_pready_ Fortran (a b c),
        mpi_pready_f08_ Fortran (a b c),
    ] Tells(Ready(0, 1));
    "MPI_Pready_range" [
        MPI_Pready_range C (a b c),
        mpi_pready_range_ Fortran (a b c d),
        mpi_pready_range_f08_ Fortran (a b c d),
    ] Tells(ReadyRange(0, 1, 2));
    "MPI_Pready_list" [
        MPI_Pready_list C (a b c),
        mpi_pready_list_ Fortran (a b c d),
        mpi_pready_list_f08_ Fortran (a b c d),
    ] Tells(ReadyList(0, 1, 2));
    "MPI_Parrived" [
        MPI_Parrived C (a b c),
        mpi_parrived_ Fortran (a b c d),
        mpi_parrived_f08_ Fortran (a b c d),
    ] Tells(ArrivedIf(0, 1, 2));
}
