//! The names of MPI's functions, as reports print them, and their numbers.
//!
//! Owns the list. The shim gets it when the two libraries are linked, and knows no function of MPI
//! by itself: [`CallNumber`] is a place in this list.

use mpi_interface::Name;

/// The number of a function of MPI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallNumber(pub u16);

const LIST: &[&str] = &[
    "MPI_Send",
    "MPI_Bsend",
    "MPI_Ssend",
    "MPI_Rsend",
    "MPI_Recv",
    "MPI_Mrecv",
    "MPI_Sendrecv",
    "MPI_Sendrecv_replace",
    "MPI_Isend",
    "MPI_Ibsend",
    "MPI_Issend",
    "MPI_Irsend",
    "MPI_Irecv",
    "MPI_Imrecv",
    "MPI_Isendrecv",
    "MPI_Isendrecv_replace",
    "MPI_Send_init",
    "MPI_Bsend_init",
    "MPI_Ssend_init",
    "MPI_Rsend_init",
    "MPI_Recv_init",
    "MPI_Pack",
    "MPI_Unpack",
    "MPI_Reduce_local",
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Ibcast",
    "MPI_Bcast_init",
    "MPI_Gather",
    "MPI_Igather",
    "MPI_Gather_init",
    "MPI_Gatherv",
    "MPI_Igatherv",
    "MPI_Gatherv_init",
    "MPI_Scatter",
    "MPI_Iscatter",
    "MPI_Scatter_init",
    "MPI_Scatterv",
    "MPI_Iscatterv",
    "MPI_Scatterv_init",
    "MPI_Allgather",
    "MPI_Iallgather",
    "MPI_Allgather_init",
    "MPI_Allgatherv",
    "MPI_Iallgatherv",
    "MPI_Allgatherv_init",
    "MPI_Alltoall",
    "MPI_Ialltoall",
    "MPI_Alltoall_init",
    "MPI_Alltoallv",
    "MPI_Ialltoallv",
    "MPI_Alltoallv_init",
    "MPI_Alltoallw",
    "MPI_Ialltoallw",
    "MPI_Alltoallw_init",
    "MPI_Reduce",
    "MPI_Ireduce",
    "MPI_Reduce_init",
    "MPI_Allreduce",
    "MPI_Iallreduce",
    "MPI_Allreduce_init",
    "MPI_Reduce_scatter",
    "MPI_Ireduce_scatter",
    "MPI_Reduce_scatter_init",
    "MPI_Reduce_scatter_block",
    "MPI_Ireduce_scatter_block",
    "MPI_Reduce_scatter_block_init",
    "MPI_Scan",
    "MPI_Iscan",
    "MPI_Scan_init",
    "MPI_Exscan",
    "MPI_Iexscan",
    "MPI_Exscan_init",
    "MPI_Neighbor_allgather",
    "MPI_Ineighbor_allgather",
    "MPI_Neighbor_allgather_init",
    "MPI_Neighbor_allgatherv",
    "MPI_Ineighbor_allgatherv",
    "MPI_Neighbor_allgatherv_init",
    "MPI_Neighbor_alltoall",
    "MPI_Ineighbor_alltoall",
    "MPI_Neighbor_alltoall_init",
    "MPI_Neighbor_alltoallv",
    "MPI_Ineighbor_alltoallv",
    "MPI_Neighbor_alltoallv_init",
    "MPI_Neighbor_alltoallw",
    "MPI_Ineighbor_alltoallw",
    "MPI_Neighbor_alltoallw_init",
    "MPI_Put",
    "MPI_Get",
    "MPI_Accumulate",
    "MPI_Get_accumulate",
    "MPI_Fetch_and_op",
    "MPI_Compare_and_swap",
    "MPI_Rput",
    "MPI_Rget",
    "MPI_Raccumulate",
    "MPI_Rget_accumulate",
    "MPI_Win_fence",
    "MPI_Win_complete",
    "MPI_Win_unlock",
    "MPI_Win_unlock_all",
    "MPI_Win_flush",
    "MPI_Win_flush_local",
    "MPI_Win_flush_all",
    "MPI_Win_flush_local_all",
    "MPI_Win_free",
    "MPI_Wait",
    "MPI_Test",
    "MPI_Request_get_status",
    "MPI_Waitall",
    "MPI_Testall",
    "MPI_Waitany",
    "MPI_Testany",
    "MPI_Waitsome",
    "MPI_Testsome",
    "MPI_Request_free",
    "MPI_Start",
    "MPI_Startall",
    "MPI_Ibarrier",
    "MPI_Probe",
    "MPI_Iprobe",
    "MPI_Mprobe",
    "MPI_Improbe",
    "MPI_Cancel",
    "MPI_Win_start",
    "MPI_Win_post",
    "MPI_Win_wait",
    "MPI_Win_test",
    "MPI_Win_lock",
    "MPI_Win_lock_all",
    "MPI_Win_sync",
    "MPI_File_read",
    "MPI_File_iread",
    "MPI_File_read_all",
    "MPI_File_iread_all",
    "MPI_File_read_all_begin",
    "MPI_File_read_all_end",
    "MPI_File_read_at",
    "MPI_File_iread_at",
    "MPI_File_read_at_all",
    "MPI_File_iread_at_all",
    "MPI_File_read_at_all_begin",
    "MPI_File_read_at_all_end",
    "MPI_File_read_shared",
    "MPI_File_iread_shared",
    "MPI_File_read_ordered",
    "MPI_File_read_ordered_begin",
    "MPI_File_read_ordered_end",
    "MPI_File_write",
    "MPI_File_iwrite",
    "MPI_File_write_all",
    "MPI_File_iwrite_all",
    "MPI_File_write_all_begin",
    "MPI_File_write_all_end",
    "MPI_File_write_at",
    "MPI_File_iwrite_at",
    "MPI_File_write_at_all",
    "MPI_File_iwrite_at_all",
    "MPI_File_write_at_all_begin",
    "MPI_File_write_at_all_end",
    "MPI_File_write_shared",
    "MPI_File_iwrite_shared",
    "MPI_File_write_ordered",
    "MPI_File_write_ordered_begin",
    "MPI_File_write_ordered_end",
    "MPI_Psend_init",
    "MPI_Precv_init",
    "MPI_Pready",
    "MPI_Pready_range",
    "MPI_Pready_list",
    "MPI_Parrived",
    "MPI_Request_get_status_all",
    "MPI_Request_get_status_any",
    "MPI_Request_get_status_some",
    "MPI_Pack_external",
    "MPI_Unpack_external",
    "MPI_Barrier_init",
    "MPI_Comm_dup",
    "MPI_Comm_dup_with_info",
    "MPI_Comm_idup",
    "MPI_Comm_split",
    "MPI_Comm_split_type",
    "MPI_Comm_create",
    "MPI_Comm_create_group",
    "MPI_Comm_free",
    "MPI_Comm_disconnect",
    "MPI_Intercomm_create",
    "MPI_Intercomm_merge",
    "MPI_Cart_create",
    "MPI_Graph_create",
    "MPI_Dist_graph_create",
    "MPI_Dist_graph_create_adjacent",
    "MPI_Win_create",
    "MPI_Win_create_dynamic",
    "MPI_Win_attach",
    "MPI_Win_detach",
    "MPI_Buffer_detach",
    "MPI_File_open",
    "MPI_File_close",
    "MPI_File_sync",
    "MPI_File_set_view",
];

/// The list, for the shim.
pub static NAMES: [Name; LIST.len()] = {
    let mut names = [Name::new(""); LIST.len()];
    let mut at = 0;
    while at < LIST.len() {
        names[at] = Name::new(LIST[at]);
        at += 1;
    }
    names
};

/// The number of a function. A name that is not in the list does not compile.
pub const fn number(name: &str) -> CallNumber {
    let mut at = 0;
    while at < LIST.len() {
        if is_same(LIST[at].as_bytes(), name.as_bytes()) {
            return CallNumber(at as u16);
        }
        at += 1;
    }
    panic!("not among the names of MPI's functions")
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}
