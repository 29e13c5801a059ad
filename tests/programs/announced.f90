! Loads and stores of the host on memory that a stream still fills, or, with `fixed`, that the host has
! waited for. For any compiler of Fortran with -fsanitize=thread.
program announced
  use iso_c_binding
  implicit none
  interface
    integer(c_int) function cudaMallocManaged(p, n, f) bind(c, name="cudaMallocManaged")
      import; type(c_ptr) :: p; integer(c_size_t), value :: n; integer(c_int), value :: f
    end function
    integer(c_int) function cudaMemsetAsync(p, v, n, s) bind(c, name="cudaMemsetAsync")
      import; type(c_ptr), value :: p; integer(c_int), value :: v; integer(c_size_t), value :: n; type(c_ptr), value :: s
    end function
    integer(c_int) function cudaStreamCreateWithFlags(s, f) bind(c, name="cudaStreamCreateWithFlags")
      import; type(c_ptr) :: s; integer(c_int), value :: f
    end function
    integer(c_int) function cudaStreamSynchronize(s) bind(c, name="cudaStreamSynchronize")
      import; type(c_ptr), value :: s
    end function
  end interface
  type(c_ptr) :: p, s
  real, pointer :: x(:)
  integer :: e, i
  real :: total
  character(len=16) :: arg
  logical :: fixed
  call get_command_argument(1, arg); fixed = arg == "fixed"
  e = cudaStreamCreateWithFlags(s, 1)
  e = cudaMallocManaged(p, 16384_c_size_t, 1)
  call c_f_pointer(p, x, [4096])
  e = cudaMemsetAsync(p, 0, 16384_c_size_t, s)
  if (fixed) e = cudaStreamSynchronize(s)
  total = 0
  do i = 1, 4096
    total = total + x(i)
  end do
  e = cudaStreamSynchronize(s)
  e = cudaMemsetAsync(p, 0, 16384_c_size_t, s)
  if (fixed) e = cudaStreamSynchronize(s)
  x = 2.0
  e = cudaStreamSynchronize(s)
  print '(a,l2)', "done", total > 1.0
end program
