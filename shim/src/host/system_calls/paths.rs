//! Functions of the C library that pass the kernel paths, names and attributes of files.
//!
//! Owns the table of those that are not as common as the ones in [`super::structures`].

use super::pieces::{PAGE, of, opens, path, reads, sized};
use super::{calls, passing};

passing! {
    getxattr c"getxattr" [path(0), path(1), sized(2, 3)];
    lgetxattr c"lgetxattr" [path(0), path(1), sized(2, 3)];
    fgetxattr c"fgetxattr" [path(1), sized(2, 3)];
    setxattr c"setxattr" [path(0), path(1), sized(2, 3)];
    lsetxattr c"lsetxattr" [path(0), path(1), sized(2, 3)];
    fsetxattr c"fsetxattr" [path(1), sized(2, 3)];
    listxattr c"listxattr" [path(0), sized(1, 2)];
    llistxattr c"llistxattr" [path(0), sized(1, 2)];
    flistxattr c"flistxattr" [sized(1, 2)];
    removexattr c"removexattr" [path(0), path(1)];
    lremovexattr c"lremovexattr" [path(0), path(1)];
    fremovexattr c"fremovexattr" [path(1)];
    inotify_add_watch c"inotify_add_watch" [path(1)];
    fanotify_mark c"fanotify_mark" [path(4)];
    memfd_create c"memfd_create" [path(0)];
    name_to_handle_at c"name_to_handle_at" [path(1), opens(2, PAGE), opens(3, of::<i32>())];
    open_by_handle_at c"open_by_handle_at" [opens(1, PAGE)];
    lutimes c"lutimes" [path(0), reads(1, of::<[libc::timeval; 2]>())];
    futimes c"futimes" [reads(1, of::<[libc::timeval; 2]>())];
    futimesat c"futimesat" [path(1), reads(2, of::<[libc::timeval; 2]>())];
    pathconf c"pathconf" [path(0)];
    eaccess c"eaccess" [path(0)];
    lchmod c"lchmod" [path(0)];
    acct c"acct" [path(0)];
    mount c"mount" [path(0), path(1), path(2), path(4)];
    umount c"umount" [path(0)];
    umount2 c"umount2" [path(0)];
    swapon c"swapon" [path(0)];
    swapoff c"swapoff" [path(0)];
    // These look files up by names that they are given, through functions of their own library.
    realpath c"realpath" [path(0), opens(1, PAGE)];
    __realpath_chk c"__realpath_chk" [path(0), opens(1, PAGE)];
    canonicalize_file_name c"canonicalize_file_name" [path(0)];
    ftok c"ftok" [path(0)];
    ftw c"ftw" [path(0)];
    ftw64 c"ftw64" [path(0)];
    nftw c"nftw" [path(0)];
    nftw64 c"nftw64" [path(0)];
    scandir c"scandir" [path(0)];
    scandir64 c"scandir64" [path(0)];
    scandirat c"scandirat" [path(1)];
    scandirat64 c"scandirat64" [path(1)];
    glob c"glob" [path(0)];
    glob64 c"glob64" [path(0)];
    mktemp c"mktemp" [path(0)];
    mkstemps c"mkstemps" [path(0)];
    mkstemps64 c"mkstemps64" [path(0)];
    mkostemps c"mkostemps" [path(0)];
    mkostemps64 c"mkostemps64" [path(0)];
    tmpnam c"tmpnam" [opens(0, PAGE)];
    tmpnam_r c"tmpnam_r" [opens(0, PAGE)];
    shm_open c"shm_open" [path(0)];
    shm_unlink c"shm_unlink" [path(0)];
    ttyname_r c"ttyname_r" [sized(1, 2)];
    __ttyname_r_chk c"__ttyname_r_chk" [sized(1, 2)];
    ptsname_r c"ptsname_r" [sized(1, 2)];
    getlogin_r c"getlogin_r" [sized(0, 1)];
}
