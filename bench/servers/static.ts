import { createServer } from 'node:http';
import { listenAndAnnounce, readOwnOptions } from './own-server.ts';

// The least that Node can start and answer with: the beginning of every comparison of start-ups.
const server = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 2 });
  response.end('{}');
});
listenAndAnnounce(server, readOwnOptions().port);
