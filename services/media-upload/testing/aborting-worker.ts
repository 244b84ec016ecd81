// A worker process that crashes before it is ready, as Node.js does if its threads cannot be started.
process.kill(process.pid, 'SIGABRT');
