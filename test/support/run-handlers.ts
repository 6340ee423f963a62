import { type Answer, operationOf, type RequestState } from '../../src/server/request-state.ts';
import { bindHandlers, type RunOptions } from '../../src/server/run-operation.ts';

/** Runs each request with the bound handler of its operation, like openapi-backend. */
export function runnerOf(registry: object, options: RunOptions): (state: RequestState) => Promise<Answer> {
  const handlers = bindHandlers(registry, options);
  return (state) => handlers[operationOf(state).id]!(undefined, state);
}
