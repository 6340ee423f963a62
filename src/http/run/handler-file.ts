import type { OperationContext, PlanContext } from '../../operation-context.ts';
import type { Planned } from '../../planned.ts';

/** What a handler is given of a request, already validated. */
export interface Input {
  readonly path: Record<string, string>;
  readonly query: Record<string, unknown>;
  readonly body: unknown;
}

type Run = (
  input: Input,
  context: OperationContext,
  planned: Planned<unknown> | undefined,
) => Promise<unknown>;

/** A handler without its specific types, which the compiler checks in the registry. */
export interface AnyHandler {
  readonly plan?: (input: Input, context: PlanContext) => Promise<unknown>;
  readonly run: Run;
}

/** The handlers of a registry by operation. */
export function handlersOf(registry: object): Readonly<Record<string, AnyHandler>> {
  const handlers = Object.entries(registry as Record<string, Run | AnyHandler>);
  return Object.fromEntries(
    handlers.map(([id, handler]) => [id, typeof handler === 'function' ? { run: handler } : handler]),
  );
}
