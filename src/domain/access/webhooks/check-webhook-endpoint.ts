import { invalidField } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';

/** Every type of event. */
export const EVERY_TYPE = '*';

/** The event of a requested test. Every endpoint receives it, whatever its event types. */
export const TEST_TYPE = 'service.test';

/**
 * Checks that events may be sent to a URL, as far as its text shows.
 *
 * @throws ApiError invalid_data
 */
export function checkUrl({ webhooks }: Pick<OperationContext, 'webhooks'>, url: string): void {
  const objection = webhooks.urlFault(url);
  if (objection !== undefined) throw invalidField('/url', objection);
}

/**
 * The event types that an endpoint subscribes to, without duplicates; only `*` if it is among them.
 *
 * @throws ApiError invalid_data for a type that is not in the contract.
 */
export async function checkEventTypes(types: readonly string[]): Promise<string[]> {
  const { webhookValidators } = await import('../../../generated/webhook-validators.js');
  for (const [index, type] of types.entries()) {
    const isKnown = type !== TEST_TYPE && Object.hasOwn(webhookValidators, type);
    if (isKnown || type === EVERY_TYPE) continue;
    throw invalidField(
      `/event_types/${index}`,
      `expected an event type or \`*\`, not ${JSON.stringify(type)}`,
    );
  }
  return types.includes(EVERY_TYPE) ? [EVERY_TYPE] : [...new Set(types)];
}

/** Whether an endpoint that subscribes to `types` receives events of `type`. */
export function isAskedFor(type: string, types: readonly string[]): boolean {
  return types.includes(EVERY_TYPE) || types.includes(type);
}
