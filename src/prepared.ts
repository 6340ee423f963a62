/** What an operation's preparation found, or the error that it met. */
export type Prepared<Found> = { readonly value: Found } | { readonly refusal: unknown };

/**
 * What the preparation found.
 *
 * @throws what the preparation met. Unwrap after `requireOwner`: strangers learn nothing of what was found outside.
 */
export function unwrapPrepared<Found>(prepared: Prepared<Found>): Found {
  if ('refusal' in prepared) throw prepared.refusal;
  return prepared.value;
}

/** Runs a preparation and keeps the error that it met, if any. */
export async function keepPrepared<Found>(preparation: () => Promise<Found>): Promise<Prepared<Found>> {
  try {
    return { value: await preparation() };
  } catch (refusal) {
    return { refusal };
  }
}
