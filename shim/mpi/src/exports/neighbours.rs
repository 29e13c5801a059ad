//! Collective functions among neighbours: blocking, non-blocking, persistent.

use crate::calls::{
    Meaning::Touches,
    Until::{Request, Return, Started},
};
use crate::collectives;

wrappers! {
    "MPI_Neighbor_allgather" [
        MPI_Neighbor_allgather C (a b c d e f g),
        MPI_Neighbor_allgather_c LargeCount (a b c d e f g),
        mpi_neighbor_allgather_ Fortran (a b c d e f g h),
        mpi_neighbor_allgather_f08_ Fortran (a b c d e f g h),
    ] Touches(collectives::neighbour_gather, Return);
    "MPI_Ineighbor_allgather" [
        MPI_Ineighbor_allgather C (a b c d e f g h),
        MPI_Ineighbor_allgather_c LargeCount (a b c d e f g h),
        mpi_ineighbor_allgather_ Fortran (a b c d e f g h i),
        mpi_ineighbor_allgather_f08_ Fortran (a b c d e f g h i),
    ] Touches(collectives::neighbour_gather, Request(7));
    "MPI_Neighbor_allgather_init" [
        MPI_Neighbor_allgather_init C (a b c d e f g h i),
        MPI_Neighbor_allgather_init_c LargeCount (a b c d e f g h i),
        mpi_neighbor_allgather_init_ Fortran (a b c d e f g h i j),
        mpi_neighbor_allgather_init_f08_ Fortran (a b c d e f g h i j),
    ] Touches(collectives::neighbour_gather, Started(8));
    "MPI_Neighbor_allgatherv" [
        MPI_Neighbor_allgatherv C (a b c d e f g h),
        MPI_Neighbor_allgatherv_c LargeCount (a b c d e f g h),
        mpi_neighbor_allgatherv_ Fortran (a b c d e f g h i),
        mpi_neighbor_allgatherv_f08_ Fortran (a b c d e f g h i),
    ] Touches(collectives::neighbour_gather_varied, Return);
    "MPI_Ineighbor_allgatherv" [
        MPI_Ineighbor_allgatherv C (a b c d e f g h i),
        MPI_Ineighbor_allgatherv_c LargeCount (a b c d e f g h i),
        mpi_ineighbor_allgatherv_ Fortran (a b c d e f g h i j),
        mpi_ineighbor_allgatherv_f08_ Fortran (a b c d e f g h i j),
    ] Touches(collectives::neighbour_gather_varied, Request(8));
    "MPI_Neighbor_allgatherv_init" [
        MPI_Neighbor_allgatherv_init C (a b c d e f g h i j),
        MPI_Neighbor_allgatherv_init_c LargeCount (a b c d e f g h i j),
        mpi_neighbor_allgatherv_init_ Fortran (a b c d e f g h i j k),
        mpi_neighbor_allgatherv_init_f08_ Fortran (a b c d e f g h i j k),
    ] Touches(collectives::neighbour_gather_varied, Started(9));
    "MPI_Neighbor_alltoall" [
        MPI_Neighbor_alltoall C (a b c d e f g),
        MPI_Neighbor_alltoall_c LargeCount (a b c d e f g),
        mpi_neighbor_alltoall_ Fortran (a b c d e f g h),
        mpi_neighbor_alltoall_f08_ Fortran (a b c d e f g h),
    ] Touches(collectives::neighbour_exchange, Return);
    "MPI_Ineighbor_alltoall" [
        MPI_Ineighbor_alltoall C (a b c d e f g h),
        MPI_Ineighbor_alltoall_c LargeCount (a b c d e f g h),
        mpi_ineighbor_alltoall_ Fortran (a b c d e f g h i),
        mpi_ineighbor_alltoall_f08_ Fortran (a b c d e f g h i),
    ] Touches(collectives::neighbour_exchange, Request(7));
    "MPI_Neighbor_alltoall_init" [
        MPI_Neighbor_alltoall_init C (a b c d e f g h i),
        MPI_Neighbor_alltoall_init_c LargeCount (a b c d e f g h i),
        mpi_neighbor_alltoall_init_ Fortran (a b c d e f g h i j),
        mpi_neighbor_alltoall_init_f08_ Fortran (a b c d e f g h i j),
    ] Touches(collectives::neighbour_exchange, Started(8));
    "MPI_Neighbor_alltoallv" [
        MPI_Neighbor_alltoallv C (a b c d e f g h i),
        MPI_Neighbor_alltoallv_c LargeCount (a b c d e f g h i),
        mpi_neighbor_alltoallv_ Fortran (a b c d e f g h i j),
        mpi_neighbor_alltoallv_f08_ Fortran (a b c d e f g h i j),
    ] Touches(collectives::neighbour_exchange_varied, Return);
    "MPI_Ineighbor_alltoallv" [
        MPI_Ineighbor_alltoallv C (a b c d e f g h i j),
        MPI_Ineighbor_alltoallv_c LargeCount (a b c d e f g h i j),
        mpi_ineighbor_alltoallv_ Fortran (a b c d e f g h i j k),
        mpi_ineighbor_alltoallv_f08_ Fortran (a b c d e f g h i j k),
    ] Touches(collectives::neighbour_exchange_varied, Request(9));
    "MPI_Neighbor_alltoallv_init" [
        MPI_Neighbor_alltoallv_init C (a b c d e f g h i j k),
        MPI_Neighbor_alltoallv_init_c LargeCount (a b c d e f g h i j k),
        mpi_neighbor_alltoallv_init_ Fortran (a b c d e f g h i j k l),
        mpi_neighbor_alltoallv_init_f08_ Fortran (a b c d e f g h i j k l),
    ] Touches(collectives::neighbour_exchange_varied, Started(10));
    "MPI_Neighbor_alltoallw" [
        MPI_Neighbor_alltoallw C (a b c d e f g h i),
        MPI_Neighbor_alltoallw_c LargeCount (a b c d e f g h i),
        mpi_neighbor_alltoallw_ Fortran (a b c d e f g h i j),
        mpi_neighbor_alltoallw_f08_ Fortran (a b c d e f g h i j),
    ] Touches(collectives::neighbour_exchange_typed, Return);
    "MPI_Ineighbor_alltoallw" [
        MPI_Ineighbor_alltoallw C (a b c d e f g h i j),
        MPI_Ineighbor_alltoallw_c LargeCount (a b c d e f g h i j),
        mpi_ineighbor_alltoallw_ Fortran (a b c d e f g h i j k),
        mpi_ineighbor_alltoallw_f08_ Fortran (a b c d e f g h i j k),
    ] Touches(collectives::neighbour_exchange_typed, Request(9));
    "MPI_Neighbor_alltoallw_init" [
        MPI_Neighbor_alltoallw_init C (a b c d e f g h i j k),
        MPI_Neighbor_alltoallw_init_c LargeCount (a b c d e f g h i j k),
        mpi_neighbor_alltoallw_init_ Fortran (a b c d e f g h i j k l),
        mpi_neighbor_alltoallw_init_f08_ Fortran (a b c d e f g h i j k l),
    ] Touches(collectives::neighbour_exchange_typed, Started(10));
}
