.globl main
main:
 .supervisor
 setzi $m0, w
 runall $m0, $m15, 0
 sync 2
 br $m10
 .worker
w:
 bri w
