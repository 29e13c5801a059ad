//! Functions that touch no buffer of their own. The library may move the bytes of other calls
//! inside.

use crate::calls::Meaning::Nothing;

wrappers! {
    "MPI_Ibarrier" [
        MPI_Ibarrier C (a b),
        mpi_ibarrier_ Fortran (a b c),
        mpi_ibarrier_f08_ Fortran (a b c),
    ] Nothing;
    "MPI_Probe" [
        MPI_Probe C (a b c d),
        mpi_probe_ Fortran (a b c d e),
        mpi_probe_f08_ Fortran (a b c d e),
    ] Nothing;
    "MPI_Iprobe" [
        MPI_Iprobe C (a b c d e),
        mpi_iprobe_ Fortran (a b c d e f),
        mpi_iprobe_f08_ Fortran (a b c d e f),
    ] Nothing;
    "MPI_Mprobe" [
        MPI_Mprobe C (a b c d e),
        mpi_mprobe_ Fortran (a b c d e f),
        mpi_mprobe_f08_ Fortran (a b c d e f),
    ] Nothing;
    "MPI_Improbe" [
        MPI_Improbe C (a b c d e f),
        mpi_improbe_ Fortran (a b c d e f g),
        mpi_improbe_f08_ Fortran (a b c d e f g),
    ] Nothing;
    "MPI_Cancel" [
        MPI_Cancel C (a),
        mpi_cancel_ Fortran (a b),
        mpi_cancel_f08_ Fortran (a b),
    ] Nothing;
    "MPI_Win_start" [
        MPI_Win_start C (a b c),
        mpi_win_start_ Fortran (a b c d),
        mpi_win_start_f08_ Fortran (a b c d),
    ] Nothing;
    "MPI_Win_post" [
        MPI_Win_post C (a b c),
        mpi_win_post_ Fortran (a b c d),
        mpi_win_post_f08_ Fortran (a b c d),
    ] Nothing;
    "MPI_Win_wait" [
        MPI_Win_wait C (a),
        mpi_win_wait_ Fortran (a b),
        mpi_win_wait_f08_ Fortran (a b),
    ] Nothing;
    "MPI_Win_test" [
        MPI_Win_test C (a b),
        mpi_win_test_ Fortran (a b c),
        mpi_win_test_f08_ Fortran (a b c),
    ] Nothing;
    "MPI_Win_lock" [
        MPI_Win_lock C (a b c d),
        mpi_win_lock_ Fortran (a b c d e),
        mpi_win_lock_f08_ Fortran (a b c d e),
    ] Nothing;
    "MPI_Win_lock_all" [
        MPI_Win_lock_all C (a b),
        mpi_win_lock_all_ Fortran (a b c),
        mpi_win_lock_all_f08_ Fortran (a b c),
    ] Nothing;
    "MPI_Win_sync" [
        MPI_Win_sync C (a),
        mpi_win_sync_ Fortran (a b),
        mpi_win_sync_f08_ Fortran (a b),
    ] Nothing;
    "MPI_Barrier_init" [
        MPI_Barrier_init C (a b c),
        mpi_barrier_init_ Fortran (a b c d),
        mpi_barrier_init_f08_ Fortran (a b c d),
    ] Nothing;
    "MPI_Comm_dup" [
        MPI_Comm_dup C (a b),
        mpi_comm_dup_ Fortran (a b c),
        mpi_comm_dup_f08_ Fortran (a b c),
    ] Nothing;
    "MPI_Comm_dup_with_info" [
        MPI_Comm_dup_with_info C (a b c),
        mpi_comm_dup_with_info_ Fortran (a b c d),
        mpi_comm_dup_with_info_f08_ Fortran (a b c d),
    ] Nothing;
    "MPI_Comm_idup" [
        MPI_Comm_idup C (a b c),
        mpi_comm_idup_ Fortran (a b c d),
        mpi_comm_idup_f08_ Fortran (a b c d),
    ] Nothing;
    "MPI_Comm_split" [
        MPI_Comm_split C (a b c d),
        mpi_comm_split_ Fortran (a b c d e),
        mpi_comm_split_f08_ Fortran (a b c d e),
    ] Nothing;
    "MPI_Comm_split_type" [
        MPI_Comm_split_type C (a b c d e),
        mpi_comm_split_type_ Fortran (a b c d e f),
        mpi_comm_split_type_f08_ Fortran (a b c d e f),
    ] Nothing;
    "MPI_Comm_create" [
        MPI_Comm_create C (a b c),
        mpi_comm_create_ Fortran (a b c d),
        mpi_comm_create_f08_ Fortran (a b c d),
    ] Nothing;
    "MPI_Comm_create_group" [
        MPI_Comm_create_group C (a b c d),
        mpi_comm_create_group_ Fortran (a b c d e),
        mpi_comm_create_group_f08_ Fortran (a b c d e),
    ] Nothing;
    "MPI_Comm_free" [
        MPI_Comm_free C (a),
        mpi_comm_free_ Fortran (a b),
        mpi_comm_free_f08_ Fortran (a b),
    ] Nothing;
    "MPI_Comm_disconnect" [
        MPI_Comm_disconnect C (a),
        mpi_comm_disconnect_ Fortran (a b),
        mpi_comm_disconnect_f08_ Fortran (a b),
    ] Nothing;
    "MPI_Intercomm_create" [
        MPI_Intercomm_create C (a b c d e f),
        mpi_intercomm_create_ Fortran (a b c d e f g),
        mpi_intercomm_create_f08_ Fortran (a b c d e f g),
    ] Nothing;
    "MPI_Intercomm_merge" [
        MPI_Intercomm_merge C (a b c),
        mpi_intercomm_merge_ Fortran (a b c d),
        mpi_intercomm_merge_f08_ Fortran (a b c d),
    ] Nothing;
    "MPI_Cart_create" [
        MPI_Cart_create C (a b c d e f),
        mpi_cart_create_ Fortran (a b c d e f g),
        mpi_cart_create_f08_ Fortran (a b c d e f g),
    ] Nothing;
    "MPI_Graph_create" [
        MPI_Graph_create C (a b c d e f),
        mpi_graph_create_ Fortran (a b c d e f g),
        mpi_graph_create_f08_ Fortran (a b c d e f g),
    ] Nothing;
    "MPI_Dist_graph_create" [
        MPI_Dist_graph_create C (a b c d e f g h i),
        mpi_dist_graph_create_ Fortran (a b c d e f g h i j),
        mpi_dist_graph_create_f08_ Fortran (a b c d e f g h i j),
    ] Nothing;
    "MPI_Dist_graph_create_adjacent" [
        MPI_Dist_graph_create_adjacent C (a b c d e f g h i j),
        mpi_dist_graph_create_adjacent_ Fortran (a b c d e f g h i j k),
        mpi_dist_graph_create_adjacent_f08_ Fortran (a b c d e f g h i j k),
    ] Nothing;
    "MPI_Win_create" [
        MPI_Win_create C (a b c d e f),
        mpi_win_create_ Fortran (a b c d e f g),
        mpi_win_create_f08_ Fortran (a b c d e f g),
    ] Nothing;
    "MPI_Win_create_dynamic" [
        MPI_Win_create_dynamic C (a b c),
        mpi_win_create_dynamic_ Fortran (a b c d),
        mpi_win_create_dynamic_f08_ Fortran (a b c d),
    ] Nothing;
    "MPI_Win_attach" [
        MPI_Win_attach C (a b c),
        mpi_win_attach_ Fortran (a b c d),
        mpi_win_attach_f08_ Fortran (a b c d),
    ] Nothing;
    "MPI_Win_detach" [
        MPI_Win_detach C (a b),
        mpi_win_detach_ Fortran (a b c),
        mpi_win_detach_f08_ Fortran (a b c),
    ] Nothing;
    "MPI_Buffer_detach" [
        MPI_Buffer_detach C (a b),
        mpi_buffer_detach_ Fortran (a b c),
        mpi_buffer_detach_f08_ Fortran (a b c),
    ] Nothing;
    "MPI_File_open" [
        MPI_File_open C (a b c d e),
    ] Nothing;
    "MPI_File_close" [
        MPI_File_close C (a),
        mpi_file_close_ Fortran (a b),
        mpi_file_close_f08_ Fortran (a b),
    ] Nothing;
    "MPI_File_sync" [
        MPI_File_sync C (a),
        mpi_file_sync_ Fortran (a b),
        mpi_file_sync_f08_ Fortran (a b),
    ] Nothing;
    "MPI_File_set_view" [
        MPI_File_set_view C (a b c d e f),
    ] Nothing;
}
