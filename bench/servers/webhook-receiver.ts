import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

// A fast endpoint: reads each event, answers 204, and tells its parent where it listens and how many came.

let count = 0;
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    count += 1;
    response.writeHead(204).end();
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
// Asked rather than told, so that telling costs the endpoint nothing.
process.on('message', () => process.send?.({ count }));
process.on('disconnect', () => process.exit());
