import { decimalText, readDecimal } from '../../engine/assets/decimal.ts';
import type { FiatRefusal } from '../../ports/fiat.ts';
import { ProviderUnavailableError } from '../unavailable-errors.ts';
import type { BridgeAnswer, BridgeObject, BridgeRefusal } from './client.ts';

// Readers of the service's responses. A response that they do not accept counts as an unavailable service.

/**
 * @throws ProviderUnavailableError
 */
export function requireText(object: BridgeObject, name: string): string {
  const value = object[name];
  if (typeof value === 'string' && value !== '') return value;
  throw unusable(`expected \`${name}\` in its answer`);
}

export function textOf(object: BridgeObject, name: string): string | undefined {
  const value = object[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Returns a nested object. Empty if there is none. */
export function objectOf(object: BridgeObject, name: string): BridgeObject {
  const value = object[name];
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as BridgeObject) : {};
}

/** Returns a list of objects. Empty if there is none. */
export function objectsOf(object: BridgeObject, name: string): readonly BridgeObject[] {
  const value = object[name];
  if (!Array.isArray(value)) return [];
  return value.filter((item): item is BridgeObject => typeof item === 'object' && item !== null);
}

/** Returns a list of texts. Empty if there is none. */
export function textsOf(object: BridgeObject, name: string): readonly string[] {
  const value = object[name];
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/**
 * Requires that a response is about the requested object.
 *
 * @throws ProviderUnavailableError
 */
export function requireSame(object: BridgeObject, name: string, expected: string): void {
  if (object[name] !== expected) throw unusable(`its answer is about another \`${name}\``);
}

/**
 * Requires that the fee in a response, if any, is the requested fee.
 *
 * @throws ProviderUnavailableError
 */
export function requireFee(object: BridgeObject, name: string, expected: string): void {
  const said = textOf(object, name);
  const fee = said === undefined ? undefined : readDecimal(said);
  if (said === undefined || (fee !== undefined && decimalText(fee) === plainDecimal(expected))) return;
  throw unusable(`its answer has another \`${name}\``);
}

/** Returns the shortest text of a decimal number. */
export function plainDecimal(text: string): string {
  const value = readDecimal(text);
  if (value === undefined) throw new Error('expected a decimal number');
  return decimalText(value);
}

/**
 * Returns the object of a response to a request that the service has no reason to refuse.
 *
 * @throws ProviderUnavailableError
 */
export function requireValue(answer: BridgeAnswer): BridgeObject {
  if ('value' in answer) return answer.value;
  throw unusable(`status ${answer.refusal.status} (\`${answer.refusal.code}\`)`);
}

/** Returns the object. Undefined if the service knows none. */
export function valueIfFound(answer: BridgeAnswer): BridgeObject | undefined {
  return 'refusal' in answer && answer.refusal.status === 404 ? undefined : requireValue(answer);
}

/**
 * Converts a refusal to the server's own format and words. `pointerOf` converts the name of a member of the request
 * to a pointer.
 */
export function refusal(
  { code, members }: BridgeRefusal,
  fault: FiatRefusal['fault'],
  pointerOf: (member: string) => string | undefined = () => undefined,
): FiatRefusal {
  const pointer = members.map(pointerOf).find((each) => each !== undefined);
  const message = `the provider refuses this (\`${code}\`)`;
  return { fault, message, ...(pointer === undefined ? {} : { pointer }) };
}

/** The error for a response that differs from the service's documentation. */
export function unusable(what: string): ProviderUnavailableError {
  return new ProviderUnavailableError(`the provider cannot be used: ${what}`);
}
