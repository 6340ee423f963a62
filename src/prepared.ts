/** The result of an operation's preparation, or its error. */
export type Prepared<Found> = { readonly value: Found } | { readonly refusal: unknown };

/**
 * Returns the result of the preparation.
 *
 * @throws the error of the preparation. Unwrap after `requireOwner`, so that unauthorized callers learn nothing from
 * it.
 */
export function unwrapPrepared<Found>(prepared: Prepared<Found>): Found {
  if ('refusal' in prepared) throw prepared.refusal;
  return prepared.value;
}

/** Runs a preparation and catches its error. */
export async function keepPrepared<Found>(preparation: () => Promise<Found>): Promise<Prepared<Found>> {
  try {
    return { value: await preparation() };
  } catch (refusal) {
    return { refusal };
  }
}
