import { invalidField } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';

/** Every type of event. */
export const EVERY_TYPE = '*';

/** The event of a requested test. Every endpoint receives it, whatever its event types. */
export const TEST_TYPE = 'service.test';

/**
 * Checks that events may be sent to a URL. Checks the text only: the host is resolved and checked for every request.
 *
 * @throws ApiError invalid_data
 */
export function checkUrl({ webhooks }: Pick<OperationContext, 'webhooks'>, url: string): void {
  const fault = webhooks.urlFault(url);
  if (fault !== undefined) throw invalidField('/url', fault);
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
      `expected an event type or \`*\`, got ${JSON.stringify(type)}`,
    );
  }
  return types.includes(EVERY_TYPE) ? [EVERY_TYPE] : [...new Set(types)];
}

/** Whether an endpoint that subscribes to `types` receives events of `type`. */
export function isSubscribedTo(type: string, types: readonly string[]): boolean {
  return types.includes(EVERY_TYPE) || types.includes(type);
}
