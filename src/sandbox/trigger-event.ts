import { ApiError, invalidField } from '../errors.ts';
import type { ControlContext, ControlInput } from './control-plane.ts';
import { InvalidPathError, parsePath, readText, valueAt, withValueAt } from './payload-path.ts';

/**
 * Builds the payload of a triggered event: the contract's example with the given branded values.
 *
 * @returns the payload with the contract's names.
 * @throws ApiError invalid_data with a JSON pointer.
 */
export async function payloadOf(
  { type: named, set = {}, set_text: texts = {} }: ControlInput<'triggerEvent'>['body'],
  { events }: Pick<ControlContext, 'events'>,
): Promise<Record<string, unknown>> {
  const type = events.readType(named);
  if (!(await events.types()).includes(type)) throw invalidField('/type', await events.unknownType(named));
  let payload: unknown = await events.example(type);
  for (const [text, value] of Object.entries(set)) {
    payload = put(payload, text, { member: 'set', value: () => value });
  }
  for (const [text, value] of Object.entries(texts)) {
    payload = put(payload, text, { member: 'set_text', value: (current) => readText(value, current) });
  }
  const read = events.read(payload);
  const fault = await events.fault(type, read);
  if (fault === undefined) return read as Record<string, unknown>;
  const { pointer, message } = fault;
  throw new ApiError('invalid_data', `event \`${named}\` ${pointer}: ${message}`, {
    data: { issues: [{ in: 'event', pointer, message }] },
  });
}

function put(
  payload: unknown,
  text: string,
  { member, value }: { member: string; value: (current: unknown) => unknown },
): unknown {
  try {
    const path = parsePath(text);
    return withValueAt(payload, path, value(valueAt(payload, path)));
  } catch (error) {
    if (!(error instanceof InvalidPathError)) throw error;
    throw invalidField(`/${member}/${text.replaceAll('~', '~0').replaceAll('/', '~1')}`, error.message);
  }
}
