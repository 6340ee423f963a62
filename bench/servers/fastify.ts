import type { IncomingHttpHeaders, Server } from 'node:http';
import { allOperations, colonPath, isAuthorized, isValid } from './contract-facts.ts';
import { announce, chooseWork, readOwnOptions } from './own-server.ts';

// Fastify with the same credentials check, the same compiled validators and the same work.

// The part of fastify that is used. Its types are not available: it is installed in `bench/`, outside the type check.
interface FastifyRequest {
  readonly headers: IncomingHttpHeaders;
  readonly url: string;
  readonly params: Record<string, string>;
  readonly query: Record<string, string>;
  readonly body: unknown;
}
interface FastifyReply {
  code(status: number): FastifyReply;
  send(body: unknown): FastifyReply;
}
interface Route {
  method: string;
  url: string;
  onRequest(request: FastifyRequest, reply: FastifyReply, done: () => void): void;
  preHandler(request: FastifyRequest, reply: FastifyReply, done: () => void): void;
  handler(request: FastifyRequest, reply: FastifyReply): Promise<unknown>;
}
interface Fastify {
  readonly server: Server;
  route(route: Route): void;
  listen(options: { host: string; port: number }): Promise<string>;
}

const options = readOwnOptions();
const work = await chooseWork(options);
const name: string = 'fastify';
const { fastify } = (await import(name)) as { fastify: (options: object) => Fastify };
const app = fastify({ logger: false });
for (const { id, method, path, successStatus } of allOperations) {
  const run = work[id];
  app.route({
    method,
    url: colonPath(path),
    onRequest(request, reply, done) {
      if (isAuthorized(request.headers)) done();
      else reply.code(401).send({ error: 'unauthorized' });
    },
    preHandler(request, reply, done) {
      const { params, query, headers, body } = request;
      if (isValid(id, { path: params, query, headers, body })) done();
      else reply.code(400).send({ error: 'invalid data' });
    },
    async handler(request, reply) {
      if (run === undefined) return reply.code(501).send({ error: 'not built' });
      reply.code(successStatus);
      const { params, body, url, headers } = request;
      return run({ path: params, body, method, url, headers });
    },
  });
}
announce(await app.listen({ host: '127.0.0.1', port: options.port }));
process.once('SIGTERM', () => process.exit(0));
