import { createServer } from 'node:http';
import { listenAndAnnounce, readOwnOptions } from './own-server.ts';

// A minimal Node server, the baseline of the start-up comparison.
const server = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 2 });
  response.end('{}');
});
listenAndAnnounce(server, readOwnOptions().port);
