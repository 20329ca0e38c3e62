"""Two doubles that are added, multiplied and compared at once, where the processor can (all of 64 bits by Intel and AMD).

gcc does not find such pairs in a loop that sums. Results are those of two doubles each, to the last bit.
"""

cdef extern from *:
    """
    #if defined(__SSE2__) || defined(_M_X64)
    #include <emmintrin.h>
    typedef __m128d TreewrightPair;
    #define treewright_pair(a, b) _mm_set_pd(b, a)
    #define treewright_pair_at(p) _mm_loadu_pd(p)
    #define treewright_sum(p, q) _mm_add_pd(p, q)
    #define treewright_scaled(p, x) _mm_mul_pd(p, _mm_set1_pd(x))
    #define treewright_larger(p, q) _mm_max_pd(p, q)
    #define treewright_smaller(p, q) _mm_min_pd(p, q)
    #define treewright_first(p) _mm_cvtsd_f64(p)
    #define treewright_second(p) _mm_cvtsd_f64(_mm_unpackhi_pd(p, p))
    #else
    typedef struct { double a, b; } TreewrightPair;
    static inline TreewrightPair treewright_pair(double a, double b) { TreewrightPair p = {a, b}; return p; }
    #define treewright_pair_at(p) treewright_pair((p)[0], (p)[1])
    #define treewright_sum(p, q) treewright_pair((p).a + (q).a, (p).b + (q).b)
    #define treewright_scaled(p, x) treewright_pair((p).a * (x), (p).b * (x))
    #define treewright_larger(p, q) treewright_pair((p).a > (q).a ? (p).a : (q).a, (p).b > (q).b ? (p).b : (q).b)
    #define treewright_smaller(p, q) treewright_pair((p).a < (q).a ? (p).a : (q).a, (p).b < (q).b ? (p).b : (q).b)
    #define treewright_first(p) (p).a
    #define treewright_second(p) (p).b
    #endif
    """
    ctypedef struct Pair "TreewrightPair":
        pass
    Pair pair "treewright_pair"(double first, double second) noexcept nogil
    Pair pair_at "treewright_pair_at"(const double* place) noexcept nogil
    Pair sum_of "treewright_sum"(Pair a, Pair b) noexcept nogil
    Pair scaled "treewright_scaled"(Pair a, double factor) noexcept nogil
    Pair larger "treewright_larger"(Pair a, Pair b) noexcept nogil
    Pair smaller "treewright_smaller"(Pair a, Pair b) noexcept nogil
    double first "treewright_first"(Pair a) noexcept nogil
    double second "treewright_second"(Pair a) noexcept nogil
