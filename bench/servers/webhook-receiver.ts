import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

// A fast endpoint: reads each event, answers 204, and reports its port and the number of events to the parent
// process.

let count = 0;
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    count += 1;
    response.writeHead(204).end();
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
// Reports the count only on request, so that reporting does not slow down the endpoint.
process.on('message', () => process.send?.({ count }));
process.on('disconnect', () => process.exit());
