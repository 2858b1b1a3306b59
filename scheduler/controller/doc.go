// Package controller is virt-controller: the loops of all kinds of the cluster side, over
// one set of caches.
//
// [New] makes a [Controller] and [Controller.Run] runs it until its context ends. The loop
// of a kind runs for each object that changed, or that depends on something that changed.
// It observes, has the kind's package decide, such as scheduler/instance, and acts. A kind
// is its entry, a [KindOf]: which objects, when one is queued, and how one is observed and
// decided on. [Kinds] are the built-in ones, and [Config] takes further ones of any API
// group. [Lead] runs the Controller, or anything else, in one process of several. A
// program with a loop of its own carries out a plan by [Execute]. docs/embedding.md is for
// programs that are not virt-controller.
//
// The package is a controller: it joins the cores below scheduler with the clients of the
// API. It holds nothing that matters; it may be killed at any time and be started again.
//
// Traps: a Controller runs once; who leads again makes another one. Several Controllers at
// the same time do no harm: the name of a pod follows from its VMI, and each status write
// carries a resourceVersion. But they cost writes that fail, so use Lead. The cache of
// pods has only launcher pods, so a pod that is missing in it may exist. Of an object,
// the caches hold only what is read here (see keep.go).
package controller
