//! Point-to-point functions, packing, and `MPI_Reduce_local`.

use crate::calls::{
    Meaning::Touches,
    Until::{Request, Return, Started},
};
use crate::effects;

wrappers! {
    "MPI_Send" [
        MPI_Send C (a b c d e f),
        MPI_Send_c LargeCount (a b c d e f),
        mpi_send_ Fortran (a b c d e f g),
        mpi_send_f08_ Fortran (a b c d e f g),
    ] Touches(effects::send, Return);
    "MPI_Bsend" [
        MPI_Bsend C (a b c d e f),
        MPI_Bsend_c LargeCount (a b c d e f),
        mpi_bsend_ Fortran (a b c d e f g),
        mpi_bsend_f08_ Fortran (a b c d e f g),
    ] Touches(effects::send, Return);
    "MPI_Ssend" [
        MPI_Ssend C (a b c d e f),
        MPI_Ssend_c LargeCount (a b c d e f),
        mpi_ssend_ Fortran (a b c d e f g),
        mpi_ssend_f08_ Fortran (a b c d e f g),
    ] Touches(effects::send, Return);
    "MPI_Rsend" [
        MPI_Rsend C (a b c d e f),
        MPI_Rsend_c LargeCount (a b c d e f),
        mpi_rsend_ Fortran (a b c d e f g),
        mpi_rsend_f08_ Fortran (a b c d e f g),
    ] Touches(effects::send, Return);
    "MPI_Recv" [
        MPI_Recv C (a b c d e f g),
        MPI_Recv_c LargeCount (a b c d e f g),
        mpi_recv_ Fortran (a b c d e f g h),
        mpi_recv_f08_ Fortran (a b c d e f g h),
    ] Touches(effects::receive, Return);
    "MPI_Mrecv" [
        MPI_Mrecv C (a b c d e),
        MPI_Mrecv_c LargeCount (a b c d e),
        mpi_mrecv_ Fortran (a b c d e f),
        mpi_mrecv_f08_ Fortran (a b c d e f),
    ] Touches(effects::receive_matched, Return);
    "MPI_Sendrecv" [
        MPI_Sendrecv C (a b c d e f g h i j k l),
        MPI_Sendrecv_c LargeCount (a b c d e f g h i j k l),
        mpi_sendrecv_ Fortran (a b c d e f g h i j k l m),
        mpi_sendrecv_f08_ Fortran (a b c d e f g h i j k l m),
    ] Touches(effects::exchange, Return);
    "MPI_Sendrecv_replace" [
        MPI_Sendrecv_replace C (a b c d e f g h i),
        MPI_Sendrecv_replace_c LargeCount (a b c d e f g h i),
        mpi_sendrecv_replace_ Fortran (a b c d e f g h i j),
        mpi_sendrecv_replace_f08_ Fortran (a b c d e f g h i j),
    ] Touches(effects::replace, Return);
    "MPI_Isend" [
        MPI_Isend C (a b c d e f g),
        MPI_Isend_c LargeCount (a b c d e f g),
        mpi_isend_ Fortran (a b c d e f g h),
        mpi_isend_f08_ Fortran (a b c d e f g h),
    ] Touches(effects::send, Request(6));
    "MPI_Ibsend" [
        MPI_Ibsend C (a b c d e f g),
        MPI_Ibsend_c LargeCount (a b c d e f g),
        mpi_ibsend_ Fortran (a b c d e f g h),
        mpi_ibsend_f08_ Fortran (a b c d e f g h),
    ] Touches(effects::send, Request(6));
    "MPI_Issend" [
        MPI_Issend C (a b c d e f g),
        MPI_Issend_c LargeCount (a b c d e f g),
        mpi_issend_ Fortran (a b c d e f g h),
        mpi_issend_f08_ Fortran (a b c d e f g h),
    ] Touches(effects::send, Request(6));
    "MPI_Irsend" [
        MPI_Irsend C (a b c d e f g),
        MPI_Irsend_c LargeCount (a b c d e f g),
        mpi_irsend_ Fortran (a b c d e f g h),
        mpi_irsend_f08_ Fortran (a b c d e f g h),
    ] Touches(effects::send, Request(6));
    "MPI_Irecv" [
        MPI_Irecv C (a b c d e f g),
        MPI_Irecv_c LargeCount (a b c d e f g),
        mpi_irecv_ Fortran (a b c d e f g h),
        mpi_irecv_f08_ Fortran (a b c d e f g h),
    ] Touches(effects::receive, Request(6));
    "MPI_Imrecv" [
        MPI_Imrecv C (a b c d e),
        MPI_Imrecv_c LargeCount (a b c d e),
        mpi_imrecv_ Fortran (a b c d e f),
        mpi_imrecv_f08_ Fortran (a b c d e f),
    ] Touches(effects::receive_matched, Request(4));
    "MPI_Isendrecv" [
        MPI_Isendrecv C (a b c d e f g h i j k l),
        MPI_Isendrecv_c LargeCount (a b c d e f g h i j k l),
        mpi_isendrecv_ Fortran (a b c d e f g h i j k l m),
        mpi_isendrecv_f08_ Fortran (a b c d e f g h i j k l m),
    ] Touches(effects::exchange, Request(11));
    "MPI_Isendrecv_replace" [
        MPI_Isendrecv_replace C (a b c d e f g h i),
        MPI_Isendrecv_replace_c LargeCount (a b c d e f g h i),
        mpi_isendrecv_replace_ Fortran (a b c d e f g h i j),
        mpi_isendrecv_replace_f08_ Fortran (a b c d e f g h i j),
    ] Touches(effects::replace, Request(8));
    "MPI_Send_init" [
        MPI_Send_init C (a b c d e f g),
        MPI_Send_init_c LargeCount (a b c d e f g),
        mpi_send_init_ Fortran (a b c d e f g h),
        mpi_send_init_f08_ Fortran (a b c d e f g h),
    ] Touches(effects::send, Started(6));
    "MPI_Bsend_init" [
        MPI_Bsend_init C (a b c d e f g),
        MPI_Bsend_init_c LargeCount (a b c d e f g),
        mpi_bsend_init_ Fortran (a b c d e f g h),
        mpi_bsend_init_f08_ Fortran (a b c d e f g h),
    ] Touches(effects::send, Started(6));
    "MPI_Ssend_init" [
        MPI_Ssend_init C (a b c d e f g),
        MPI_Ssend_init_c LargeCount (a b c d e f g),
        mpi_ssend_init_ Fortran (a b c d e f g h),
        mpi_ssend_init_f08_ Fortran (a b c d e f g h),
    ] Touches(effects::send, Started(6));
    "MPI_Rsend_init" [
        MPI_Rsend_init C (a b c d e f g),
        MPI_Rsend_init_c LargeCount (a b c d e f g),
        mpi_rsend_init_ Fortran (a b c d e f g h),
        mpi_rsend_init_f08_ Fortran (a b c d e f g h),
    ] Touches(effects::send, Started(6));
    "MPI_Recv_init" [
        MPI_Recv_init C (a b c d e f g),
        MPI_Recv_init_c LargeCount (a b c d e f g),
        mpi_recv_init_ Fortran (a b c d e f g h),
        mpi_recv_init_f08_ Fortran (a b c d e f g h),
    ] Touches(effects::receive, Started(6));
    "MPI_Pack" [
        MPI_Pack C (a b c d e f g),
        MPI_Pack_c LargeCount (a b c d e f g),
        mpi_pack_ Fortran (a b c d e f g h),
        mpi_pack_f08_ Fortran (a b c d e f g h),
    ] Touches(effects::pack, Return);
    "MPI_Unpack" [
        MPI_Unpack C (a b c d e f g),
        MPI_Unpack_c LargeCount (a b c d e f g),
        mpi_unpack_ Fortran (a b c d e f g h),
        mpi_unpack_f08_ Fortran (a b c d e f g h),
    ] Touches(effects::unpack, Return);
    "MPI_Reduce_local" [
        MPI_Reduce_local C (a b c d e),
        MPI_Reduce_local_c LargeCount (a b c d e),
        mpi_reduce_local_ Fortran (a b c d e f),
        mpi_reduce_local_f08_ Fortran (a b c d e f),
    ] Touches(effects::reduce_local, Return);
    "MPI_Pack_external" [
        MPI_Pack_external C (a b c d e f g),
        MPI_Pack_external_c LargeCount (a b c d e f g),
    ] Touches(effects::pack_external, Return);
    "MPI_Unpack_external" [
        MPI_Unpack_external C (a b c d e f g),
        MPI_Unpack_external_c LargeCount (a b c d e f g),
    ] Touches(effects::unpack_external, Return);
}
