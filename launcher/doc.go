// Package launcher decides the life of one domain, from the first Desired to the end of
// the domain.
//
// [Decide] compares what is desired with what is and returns what to do now, the state
// that the handler reads, and when to decide again:
//
//	domain      desired       plan
//	gone        anything      finish with the end of the domain
//	absent      stop          finish: cancelled
//	absent      target        wait
//	absent      run           finish: cannot start, if the fault is in the spec;
//	                          else start, now or when the back-off is over
//	absent      nothing       wait
//	starting    stop          cancel the start
//	starting    run           wait
//	running     stop          request a shutdown every 2 s; destroy the domain when
//	                          the grace period is over
//	running     call pause    suspend
//	running     run           wait
//	paused      stop          destroy the domain at once; one that is paused for a
//	                          migration is handled as if it were running
//	paused      call pause    wait
//	paused      call unpause  resume
//	paused      run           resume when the back-off is over, if an I/O error
//	                          paused the guest; else wait
//
// A guest that moves has further situations, which come first:
//
//	migration   desired       plan
//	receives    stop          discard the QEMU that waits, then finish: cancelled
//	sends       stop          abort the migration, then as above; destroy the domain when
//	                          the grace period is over
//	sends       call pause    suspend: the guest arrives paused
//	sends       run           wait: nothing resumes the guest but the migration
//	sent        stop          wait for the outcome; destroy the domain when the grace
//	                          period is over
//	sent        run           wait for the outcome, also when the domain is gone: no timer
//	                          resumes the guest, which may run elsewhere
//
// A paused guest is not resumed to power off. It cannot react to a request before it runs,
// and whether it would react then is not known. Its disk may fail, its kernel may have
// crashed, or its user may have paused it on purpose. Waiting for the end of the grace
// period would gain nothing. What its page cache holds is lost, as with a power cut; a
// user that needs it unpauses the VMI before deleting it.
//
// A guest that an I/O error paused is resumed after 10 s. If it is paused again, the time
// doubles, up to 3 minutes. It is reported as running when it has run for a second: QEMU
// repeats the request that failed at once.
//
// While there is a domain, its devices are compared with the desired ones. A disk that is
// smaller than desired is resized, and a link that is not as desired is switched. Each is
// an [Operation], at most one at a time of a device. What fails is tried again after a
// back-off. This build attaches and detaches nothing in a domain that runs; such a
// difference is a finding in the state.
//
// A domain is created once: one that is gone is not created again. Observing and acting is
// launcher/supervisor's. The package computes; it touches nothing.
package launcher
