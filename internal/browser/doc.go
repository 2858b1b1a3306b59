// Package browser drives a real browser, Chromium without a window, in tests of pages.
//
// [Open] opens a page. [Browser.Eval] asks what is in it, [Browser.Until] waits for it, and
// [Browser.Press] presses keys. It uses the DevTools protocol over a pair of pipes and
// needs no other program.
package browser
