import type { Answer, HttpExchange } from '../../src/server/http-exchange.ts';
import { operationOf } from '../../src/server/http-exchange.ts';
import { bindHandlers, type RunOptions } from '../../src/server/run-operation.ts';

/** Runs each request by the bound handler of its operation, as openapi-backend does. */
export function runnerOf(registry: object, options: RunOptions): (exchange: HttpExchange) => Promise<Answer> {
  const handlers = bindHandlers(registry, options);
  return (exchange) => handlers[operationOf(exchange).id]!(undefined, exchange);
}
