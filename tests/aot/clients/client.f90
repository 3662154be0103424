! Arrays of Fortran, sections of them too, handed to functions that take C order, Fortran order or any strides.
program client
    use, intrinsic :: iso_c_binding
    use model
    implicit none
    real(c_double), target :: u(50), slope(50), wide(2, 50), table(4, 3), column(3), same(3, 4)
    logical(c_bool), target :: flags(3)
    real(c_double) :: value, kappa_grad
    real(c_double), allocatable :: values(:), both(:, :)
    type(model_f64_1) :: first, kept
    type(model_f64_2) :: second
    type(c_ptr) :: owner
    integer(c_int) :: status
    integer :: i, j

    u = [(0.1_c_double * i, i = 0, 49)]
    status = loss_value_and_grad_alloc(model_array(u), 0.05_c_double, 6_c_int64_t, value, model_array(slope), &
        kappa_grad)
    call must(status)
    print '(3es25.17)', value, slope(8), kappa_grad

    ! What may be NULL is left out; a section has strides that C order refuses.
    wide(1, :) = [(0.1_c_double * i, i = 0, 49)]
    status = loss_value_and_grad_alloc(model_array(wide(1, :)), 0.05_c_double, 6_c_int64_t, u_grad=model_array(slope))
    print '(l1,1x,a)', iand(status, 255) == MODEL_BAD_LAYOUT, model_strerror(status)

    ! Python's weighted[i, j] is table(j + 1, i + 1), and same(i + 1, j + 1).
    table = reshape([(real(i, c_double), i = 1, 12)], [4, 3])
    same = transpose(table)
    column = [1.0_c_double, 10.0_c_double, 100.0_c_double]
    status = weighted_alloc(model_transposed(table), model_array(column), first, second, owner)
    call must(status)
    values = model_values(first)
    both = model_values(second)
    print '(4f9.1)', values
    print '(2i3,l2)', shape(both), maxval(abs(both - 2 * same)) < 1e-12
    call model_free(owner)
    status = weighted_alloc(model_array(table), model_array(column), first, second, owner)
    print '(l1)', iand(status, 255) == MODEL_BAD_LAYOUT

    ! In Fortran order, and of any strides; what is written is Fortran's array.
    status = ordered_alloc(model_array(same), 2_c_int64_t, first, owner)
    call must(status)
    print '(4f9.1)', model_values(first)
    call model_free(owner)
    flags = [.true._c_bool, .false._c_bool, .true._c_bool]
    status = grow_alloc(model_array(table(4:1:-2, :)), model_array(flags))
    call must(status)
    print '(4f9.1)', ((table(j, i), j = 1, 4), i = 1, 3)

    ! Sizes that data decides.
    u(3) = -1
    status = positive_alloc(model_array(u), kept)
    call must(status)
    values = model_values(kept)
    print '(i3,2es25.17)', size(values), values(1), values(48)
    call model_free(kept%data)
    deallocate (values, both) ! sanitizers look for what is left

contains

    subroutine must(status)
        integer(c_int), intent(in) :: status
        if (status == MODEL_OK) return
        print '(a)', model_strerror(status)
        error stop 1
    end subroutine must

end program client
