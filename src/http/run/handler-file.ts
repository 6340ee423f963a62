import type { OperationContext, PreparationContext } from '../../operation-context.ts';
import type { Prepared } from '../../prepared.ts';

/** What a handler is given of a request, already validated. */
export interface Input {
  readonly path: Record<string, string>;
  readonly query: Record<string, unknown>;
  readonly body: unknown;
}

/** A handler file without its specific types, which the compiler checks in the registry. */
export interface AnyHandlerFile {
  readonly prepare?: (input: Input, context: PreparationContext) => Promise<unknown>;
  readonly prepareAlone?: (input: Input) => unknown;
  readonly run: (
    input: Input,
    context: OperationContext,
    prepared: Prepared<unknown> | undefined,
  ) => Promise<unknown>;
}
