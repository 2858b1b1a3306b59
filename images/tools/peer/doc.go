// Command peer is an end of the connections that tests make between pods and guests.
//
//	peer serve TCP,... UDP,...     answer at these ports, and give this program at port 9999
//	peer get URL                   print a page; https takes any certificate and prints whose it is
//	peer ask tcp|udp ADDRESS       print the answer of serve: "NAME saw ADDRESS"
//	peer connect ADDRESS COUNT     make connections one after another; print how many answered
//	peer send ADDRESS SECONDS      send a stream for so long; fail unless the other end got every byte of it
//	peer large ADDRESS BYTES       send a datagram that is not fragmented, and wait for as much back
//	peer hold ADDRESS FILE         keep a connection open, exchange a line each 100 ms, and count them in FILE
//	peer resolve NAME              print the addresses of a name
//
// serve answers a connection by its first line: "run" with a JSON list of arguments runs a
// program and prints what it wrote and its status, "sum" counts the bytes up to
// the end of the stream and prints that and their checksum, "echo" sends every line back, and anything else gets the name of
// the host and the address that the connection came from. A datagram gets the latter,
// and is as long as the one that came where that is longer.
//
// It is for tests only: who reaches its ports runs programs as its user.
package main
