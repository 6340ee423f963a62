import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { bareAnswer, send } from './bare-answer.ts';
import { operationFinder } from './find-operation.ts';
import { chooseWork, listenAndAnnounce, readOwnOptions } from './own-server.ts';

// The practical limit for the same work: node:http, a radix router, precompiled validators, JSON.stringify, no
// framework.

const options = readOwnOptions();
const answer = bareAnswer(await chooseWork(options));
const find = operationFinder();

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const found = find(request);
  if (found === undefined) return send(response, 404, { error: 'not found' });
  return answer(request, response, found);
}

const server = createServer((request, response) => {
  serve(request, response).catch((error: unknown) => send(response, 500, { error: String(error) }));
});
listenAndAnnounce(server, options.port);
