//! Collective functions: blocking, non-blocking, persistent.

use crate::calls::{
    Meaning::{Nothing, Touches},
    Until::{Request, Return, Started},
};
use crate::collectives;

wrappers! {
    "MPI_Barrier" [
        MPI_Barrier C (a),
        mpi_barrier_ Fortran (a b),
        mpi_barrier_f08_ Fortran (a b),
    ] Nothing;
    "MPI_Bcast" [
        MPI_Bcast C (a b c d e),
        MPI_Bcast_c LargeCount (a b c d e),
        mpi_bcast_ Fortran (a b c d e f),
        mpi_bcast_f08_ Fortran (a b c d e f),
    ] Touches(collectives::broadcast, Return);
    "MPI_Ibcast" [
        MPI_Ibcast C (a b c d e f),
        MPI_Ibcast_c LargeCount (a b c d e f),
        mpi_ibcast_ Fortran (a b c d e f g),
        mpi_ibcast_f08_ Fortran (a b c d e f g),
    ] Touches(collectives::broadcast, Request(5));
    "MPI_Bcast_init" [
        MPI_Bcast_init C (a b c d e f g),
        MPI_Bcast_init_c LargeCount (a b c d e f g),
        mpi_bcast_init_ Fortran (a b c d e f g h),
        mpi_bcast_init_f08_ Fortran (a b c d e f g h),
    ] Touches(collectives::broadcast, Started(6));
    "MPI_Gather" [
        MPI_Gather C (a b c d e f g h),
        MPI_Gather_c LargeCount (a b c d e f g h),
        mpi_gather_ Fortran (a b c d e f g h i),
        mpi_gather_f08_ Fortran (a b c d e f g h i),
    ] Touches(collectives::gather, Return);
    "MPI_Igather" [
        MPI_Igather C (a b c d e f g h i),
        MPI_Igather_c LargeCount (a b c d e f g h i),
        mpi_igather_ Fortran (a b c d e f g h i j),
        mpi_igather_f08_ Fortran (a b c d e f g h i j),
    ] Touches(collectives::gather, Request(8));
    "MPI_Gather_init" [
        MPI_Gather_init C (a b c d e f g h i j),
        MPI_Gather_init_c LargeCount (a b c d e f g h i j),
        mpi_gather_init_ Fortran (a b c d e f g h i j k),
        mpi_gather_init_f08_ Fortran (a b c d e f g h i j k),
    ] Touches(collectives::gather, Started(9));
    "MPI_Gatherv" [
        MPI_Gatherv C (a b c d e f g h i),
        MPI_Gatherv_c LargeCount (a b c d e f g h i),
        mpi_gatherv_ Fortran (a b c d e f g h i j),
        mpi_gatherv_f08_ Fortran (a b c d e f g h i j),
    ] Touches(collectives::gather_varied, Return);
    "MPI_Igatherv" [
        MPI_Igatherv C (a b c d e f g h i j),
        MPI_Igatherv_c LargeCount (a b c d e f g h i j),
        mpi_igatherv_ Fortran (a b c d e f g h i j k),
        mpi_igatherv_f08_ Fortran (a b c d e f g h i j k),
    ] Touches(collectives::gather_varied, Request(9));
    "MPI_Gatherv_init" [
        MPI_Gatherv_init C (a b c d e f g h i j k),
        MPI_Gatherv_init_c LargeCount (a b c d e f g h i j k),
        mpi_gatherv_init_ Fortran (a b c d e f g h i j k l),
        mpi_gatherv_init_f08_ Fortran (a b c d e f g h i j k l),
    ] Touches(collectives::gather_varied, Started(10));
    "MPI_Scatter" [
        MPI_Scatter C (a b c d e f g h),
        MPI_Scatter_c LargeCount (a b c d e f g h),
        mpi_scatter_ Fortran (a b c d e f g h i),
        mpi_scatter_f08_ Fortran (a b c d e f g h i),
    ] Touches(collectives::scatter, Return);
    "MPI_Iscatter" [
        MPI_Iscatter C (a b c d e f g h i),
        MPI_Iscatter_c LargeCount (a b c d e f g h i),
        mpi_iscatter_ Fortran (a b c d e f g h i j),
        mpi_iscatter_f08_ Fortran (a b c d e f g h i j),
    ] Touches(collectives::scatter, Request(8));
    "MPI_Scatter_init" [
        MPI_Scatter_init C (a b c d e f g h i j),
        MPI_Scatter_init_c LargeCount (a b c d e f g h i j),
        mpi_scatter_init_ Fortran (a b c d e f g h i j k),
        mpi_scatter_init_f08_ Fortran (a b c d e f g h i j k),
    ] Touches(collectives::scatter, Started(9));
    "MPI_Scatterv" [
        MPI_Scatterv C (a b c d e f g h i),
        MPI_Scatterv_c LargeCount (a b c d e f g h i),
        mpi_scatterv_ Fortran (a b c d e f g h i j),
        mpi_scatterv_f08_ Fortran (a b c d e f g h i j),
    ] Touches(collectives::scatter_varied, Return);
    "MPI_Iscatterv" [
        MPI_Iscatterv C (a b c d e f g h i j),
        MPI_Iscatterv_c LargeCount (a b c d e f g h i j),
        mpi_iscatterv_ Fortran (a b c d e f g h i j k),
        mpi_iscatterv_f08_ Fortran (a b c d e f g h i j k),
    ] Touches(collectives::scatter_varied, Request(9));
    "MPI_Scatterv_init" [
        MPI_Scatterv_init C (a b c d e f g h i j k),
        MPI_Scatterv_init_c LargeCount (a b c d e f g h i j k),
        mpi_scatterv_init_ Fortran (a b c d e f g h i j k l),
        mpi_scatterv_init_f08_ Fortran (a b c d e f g h i j k l),
    ] Touches(collectives::scatter_varied, Started(10));
    "MPI_Allgather" [
        MPI_Allgather C (a b c d e f g),
        MPI_Allgather_c LargeCount (a b c d e f g),
        mpi_allgather_ Fortran (a b c d e f g h),
        mpi_allgather_f08_ Fortran (a b c d e f g h),
    ] Touches(collectives::gather_all, Return);
    "MPI_Iallgather" [
        MPI_Iallgather C (a b c d e f g h),
        MPI_Iallgather_c LargeCount (a b c d e f g h),
        mpi_iallgather_ Fortran (a b c d e f g h i),
        mpi_iallgather_f08_ Fortran (a b c d e f g h i),
    ] Touches(collectives::gather_all, Request(7));
    "MPI_Allgather_init" [
        MPI_Allgather_init C (a b c d e f g h i),
        MPI_Allgather_init_c LargeCount (a b c d e f g h i),
        mpi_allgather_init_ Fortran (a b c d e f g h i j),
        mpi_allgather_init_f08_ Fortran (a b c d e f g h i j),
    ] Touches(collectives::gather_all, Started(8));
    "MPI_Allgatherv" [
        MPI_Allgatherv C (a b c d e f g h),
        MPI_Allgatherv_c LargeCount (a b c d e f g h),
        mpi_allgatherv_ Fortran (a b c d e f g h i),
        mpi_allgatherv_f08_ Fortran (a b c d e f g h i),
    ] Touches(collectives::gather_all_varied, Return);
    "MPI_Iallgatherv" [
        MPI_Iallgatherv C (a b c d e f g h i),
        MPI_Iallgatherv_c LargeCount (a b c d e f g h i),
        mpi_iallgatherv_ Fortran (a b c d e f g h i j),
        mpi_iallgatherv_f08_ Fortran (a b c d e f g h i j),
    ] Touches(collectives::gather_all_varied, Request(8));
    "MPI_Allgatherv_init" [
        MPI_Allgatherv_init C (a b c d e f g h i j),
        MPI_Allgatherv_init_c LargeCount (a b c d e f g h i j),
        mpi_allgatherv_init_ Fortran (a b c d e f g h i j k),
        mpi_allgatherv_init_f08_ Fortran (a b c d e f g h i j k),
    ] Touches(collectives::gather_all_varied, Started(9));
    "MPI_Alltoall" [
        MPI_Alltoall C (a b c d e f g),
        MPI_Alltoall_c LargeCount (a b c d e f g),
        mpi_alltoall_ Fortran (a b c d e f g h),
        mpi_alltoall_f08_ Fortran (a b c d e f g h),
    ] Touches(collectives::all_to_all, Return);
    "MPI_Ialltoall" [
        MPI_Ialltoall C (a b c d e f g h),
        MPI_Ialltoall_c LargeCount (a b c d e f g h),
        mpi_ialltoall_ Fortran (a b c d e f g h i),
        mpi_ialltoall_f08_ Fortran (a b c d e f g h i),
    ] Touches(collectives::all_to_all, Request(7));
    "MPI_Alltoall_init" [
        MPI_Alltoall_init C (a b c d e f g h i),
        MPI_Alltoall_init_c LargeCount (a b c d e f g h i),
        mpi_alltoall_init_ Fortran (a b c d e f g h i j),
        mpi_alltoall_init_f08_ Fortran (a b c d e f g h i j),
    ] Touches(collectives::all_to_all, Started(8));
    "MPI_Alltoallv" [
        MPI_Alltoallv C (a b c d e f g h i),
        MPI_Alltoallv_c LargeCount (a b c d e f g h i),
        mpi_alltoallv_ Fortran (a b c d e f g h i j),
        mpi_alltoallv_f08_ Fortran (a b c d e f g h i j),
    ] Touches(collectives::all_to_all_varied, Return);
    "MPI_Ialltoallv" [
        MPI_Ialltoallv C (a b c d e f g h i j),
        MPI_Ialltoallv_c LargeCount (a b c d e f g h i j),
        mpi_ialltoallv_ Fortran (a b c d e f g h i j k),
        mpi_ialltoallv_f08_ Fortran (a b c d e f g h i j k),
    ] Touches(collectives::all_to_all_varied, Request(9));
    "MPI_Alltoallv_init" [
        MPI_Alltoallv_init C (a b c d e f g h i j k),
        MPI_Alltoallv_init_c LargeCount (a b c d e f g h i j k),
        mpi_alltoallv_init_ Fortran (a b c d e f g h i j k l),
        mpi_alltoallv_init_f08_ Fortran (a b c d e f g h i j k l),
    ] Touches(collectives::all_to_all_varied, Started(10));
    "MPI_Alltoallw" [
        MPI_Alltoallw C (a b c d e f g h i),
        MPI_Alltoallw_c LargeCount (a b c d e f g h i),
        mpi_alltoallw_ Fortran (a b c d e f g h i j),
        mpi_alltoallw_f08_ Fortran (a b c d e f g h i j),
    ] Touches(collectives::all_to_all_typed, Return);
    "MPI_Ialltoallw" [
        MPI_Ialltoallw C (a b c d e f g h i j),
        MPI_Ialltoallw_c LargeCount (a b c d e f g h i j),
        mpi_ialltoallw_ Fortran (a b c d e f g h i j k),
        mpi_ialltoallw_f08_ Fortran (a b c d e f g h i j k),
    ] Touches(collectives::all_to_all_typed, Request(9));
    "MPI_Alltoallw_init" [
        MPI_Alltoallw_init C (a b c d e f g h i j k),
        MPI_Alltoallw_init_c LargeCount (a b c d e f g h i j k),
        mpi_alltoallw_init_ Fortran (a b c d e f g h i j k l),
        mpi_alltoallw_init_f08_ Fortran (a b c d e f g h i j k l),
    ] Touches(collectives::all_to_all_typed, Started(10));
    "MPI_Reduce" [
        MPI_Reduce C (a b c d e f g),
        MPI_Reduce_c LargeCount (a b c d e f g),
        mpi_reduce_ Fortran (a b c d e f g h),
        mpi_reduce_f08_ Fortran (a b c d e f g h),
    ] Touches(collectives::reduce, Return);
    "MPI_Ireduce" [
        MPI_Ireduce C (a b c d e f g h),
        MPI_Ireduce_c LargeCount (a b c d e f g h),
        mpi_ireduce_ Fortran (a b c d e f g h i),
        mpi_ireduce_f08_ Fortran (a b c d e f g h i),
    ] Touches(collectives::reduce, Request(7));
    "MPI_Reduce_init" [
        MPI_Reduce_init C (a b c d e f g h i),
        MPI_Reduce_init_c LargeCount (a b c d e f g h i),
        mpi_reduce_init_ Fortran (a b c d e f g h i j),
        mpi_reduce_init_f08_ Fortran (a b c d e f g h i j),
    ] Touches(collectives::reduce, Started(8));
    "MPI_Allreduce" [
        MPI_Allreduce C (a b c d e f),
        MPI_Allreduce_c LargeCount (a b c d e f),
        mpi_allreduce_ Fortran (a b c d e f g),
        mpi_allreduce_f08_ Fortran (a b c d e f g),
    ] Touches(collectives::reduce_all, Return);
    "MPI_Iallreduce" [
        MPI_Iallreduce C (a b c d e f g),
        MPI_Iallreduce_c LargeCount (a b c d e f g),
        mpi_iallreduce_ Fortran (a b c d e f g h),
        mpi_iallreduce_f08_ Fortran (a b c d e f g h),
    ] Touches(collectives::reduce_all, Request(6));
    "MPI_Allreduce_init" [
        MPI_Allreduce_init C (a b c d e f g h),
        MPI_Allreduce_init_c LargeCount (a b c d e f g h),
        mpi_allreduce_init_ Fortran (a b c d e f g h i),
        mpi_allreduce_init_f08_ Fortran (a b c d e f g h i),
    ] Touches(collectives::reduce_all, Started(7));
    "MPI_Reduce_scatter" [
        MPI_Reduce_scatter C (a b c d e f),
        MPI_Reduce_scatter_c LargeCount (a b c d e f),
        mpi_reduce_scatter_ Fortran (a b c d e f g),
        mpi_reduce_scatter_f08_ Fortran (a b c d e f g),
    ] Touches(collectives::reduce_scatter, Return);
    "MPI_Ireduce_scatter" [
        MPI_Ireduce_scatter C (a b c d e f g),
        MPI_Ireduce_scatter_c LargeCount (a b c d e f g),
        mpi_ireduce_scatter_ Fortran (a b c d e f g h),
        mpi_ireduce_scatter_f08_ Fortran (a b c d e f g h),
    ] Touches(collectives::reduce_scatter, Request(6));
    "MPI_Reduce_scatter_init" [
        MPI_Reduce_scatter_init C (a b c d e f g h),
        MPI_Reduce_scatter_init_c LargeCount (a b c d e f g h),
        mpi_reduce_scatter_init_ Fortran (a b c d e f g h i),
        mpi_reduce_scatter_init_f08_ Fortran (a b c d e f g h i),
    ] Touches(collectives::reduce_scatter, Started(7));
    "MPI_Reduce_scatter_block" [
        MPI_Reduce_scatter_block C (a b c d e f),
        MPI_Reduce_scatter_block_c LargeCount (a b c d e f),
        mpi_reduce_scatter_block_ Fortran (a b c d e f g),
        mpi_reduce_scatter_block_f08_ Fortran (a b c d e f g),
    ] Touches(collectives::reduce_scatter_block, Return);
    "MPI_Ireduce_scatter_block" [
        MPI_Ireduce_scatter_block C (a b c d e f g),
        MPI_Ireduce_scatter_block_c LargeCount (a b c d e f g),
        mpi_ireduce_scatter_block_ Fortran (a b c d e f g h),
        mpi_ireduce_scatter_block_f08_ Fortran (a b c d e f g h),
    ] Touches(collectives::reduce_scatter_block, Request(6));
    "MPI_Reduce_scatter_block_init" [
        MPI_Reduce_scatter_block_init C (a b c d e f g h),
        MPI_Reduce_scatter_block_init_c LargeCount (a b c d e f g h),
        mpi_reduce_scatter_block_init_ Fortran (a b c d e f g h i),
        mpi_reduce_scatter_block_init_f08_ Fortran (a b c d e f g h i),
    ] Touches(collectives::reduce_scatter_block, Started(7));
    "MPI_Scan" [
        MPI_Scan C (a b c d e f),
        MPI_Scan_c LargeCount (a b c d e f),
        mpi_scan_ Fortran (a b c d e f g),
        mpi_scan_f08_ Fortran (a b c d e f g),
    ] Touches(collectives::reduce_all, Return);
    "MPI_Iscan" [
        MPI_Iscan C (a b c d e f g),
        MPI_Iscan_c LargeCount (a b c d e f g),
        mpi_iscan_ Fortran (a b c d e f g h),
        mpi_iscan_f08_ Fortran (a b c d e f g h),
    ] Touches(collectives::reduce_all, Request(6));
    "MPI_Scan_init" [
        MPI_Scan_init C (a b c d e f g h),
        MPI_Scan_init_c LargeCount (a b c d e f g h),
        mpi_scan_init_ Fortran (a b c d e f g h i),
        mpi_scan_init_f08_ Fortran (a b c d e f g h i),
    ] Touches(collectives::reduce_all, Started(7));
    "MPI_Exscan" [
        MPI_Exscan C (a b c d e f),
        MPI_Exscan_c LargeCount (a b c d e f),
        mpi_exscan_ Fortran (a b c d e f g),
        mpi_exscan_f08_ Fortran (a b c d e f g),
    ] Touches(collectives::reduce_all, Return);
    "MPI_Iexscan" [
        MPI_Iexscan C (a b c d e f g),
        MPI_Iexscan_c LargeCount (a b c d e f g),
        mpi_iexscan_ Fortran (a b c d e f g h),
        mpi_iexscan_f08_ Fortran (a b c d e f g h),
    ] Touches(collectives::reduce_all, Request(6));
    "MPI_Exscan_init" [
        MPI_Exscan_init C (a b c d e f g h),
        MPI_Exscan_init_c LargeCount (a b c d e f g h),
        mpi_exscan_init_ Fortran (a b c d e f g h i),
        mpi_exscan_init_f08_ Fortran (a b c d e f g h i),
    ] Touches(collectives::reduce_all, Started(7));
}
