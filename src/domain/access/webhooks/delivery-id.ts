import { hash } from 'node:crypto';

/**
 * The id of an event's delivery to an endpoint. It is derived, not drawn: assigning an event to an endpoint twice has
 * no effect, and in a seeded server background work does not change the ids that requests draw.
 *
 * @returns 24 characters, `d` and the first 23 base-36 digits of SHA-256(event id || "." || endpoint id).
 */
export function deliveryIdOf(eventId: string, endpointId: string): string {
  const digest = BigInt(`0x${hash('sha256', `${eventId}.${endpointId}`)}`);
  return `d${digest.toString(36).padStart(50, '0').slice(0, 23)}`;
}
