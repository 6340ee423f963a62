import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import express from 'express';
import { OpenAPIBackend, type Request } from 'openapi-backend';
import { entities } from '../../src/domain/tables.ts';
import { openDatabase } from '../../src/storage/open-database.ts';
import { bareAnswer, type Found, send } from './bare-answer.ts';
import { allOperations } from './contract-facts.ts';
import { operationFinder } from './find-operation.ts';
import { chooseWork, listenAndAnnounce, readOwnOptions } from './own-server.ts';
import { promisedAnswer } from './promised-answer.ts';

// The bare server behind the packages whose use the specification fixes: express takes the request, openapi-backend
// routes it, and a fork of MikroORM's entity manager is made for it. As in Custos, openapi-backend is given the operation
// that a radix router found and does not validate a second time; the work is that of the bare server.

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly found: Found;
}

const options = readOwnOptions();
const work = await chooseWork(options);
const answer = options.isComplete ? promisedAnswer(work) : await bareAnswer(work, options);
const find = operationFinder();
const { orm } = await openDatabase(entities, { kind: 'sqlite', file: ':memory:' });

const CREDENTIALS = 'credentials';
// With all promises, openapi-backend confirms that the credentials were checked.
const security = options.isComplete ? [{ [CREDENTIALS]: [] }] : [];
const known = allOperations.map(({ id, method, path }) => ({
  ...{ operationId: id, method: method.toLowerCase(), path, security },
  responses: {},
}));
const byId = new Map<string, (typeof known)[number]>(known.map((each) => [each.operationId, each]));
const securitySchemes = { [CREDENTIALS]: { type: 'http' as const, scheme: 'basic' } };
const definition = {
  ...{ openapi: '3.1.0', info: { title: 'bench', version: '1' }, paths: {} },
  components: { securitySchemes },
};
const api = new OpenAPIBackend({ definition, quick: true, validate: false });
await api.init();
const exchangeOf = (request: unknown): Exchange => request as Exchange;
Object.assign(api.router, {
  getOperations: () => known,
  getOperation: (id: string) => byId.get(id),
  matchOperation: (request: unknown) => byId.get(exchangeOf(request).found.operation.id),
  parseRequest: (request: unknown) => request,
});
for (const { operationId } of known) {
  api.registerHandler(operationId, (_context, { request, response, found }: Exchange) => {
    orm.em.fork();
    return answer(request, response, found);
  });
}
api.registerSecurityHandler(CREDENTIALS, () => true);
api.register({ notFound: () => undefined, methodNotAllowed: () => undefined });

const app = express();
app.disable('x-powered-by');
app.use((request, response) => {
  const found = find(request);
  if (found === undefined) {
    send(response, 404, { error: 'not found' });
    return;
  }
  const exchange: Exchange = { request, response, found };
  api
    .handleRequest(exchange as unknown as Request, exchange)
    .catch((error: unknown) => send(response, 500, { error: String(error) }));
});
listenAndAnnounce(createServer(app), options.port);
