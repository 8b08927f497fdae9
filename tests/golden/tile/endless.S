.worker
.globl endless
endless:
    bri endless
