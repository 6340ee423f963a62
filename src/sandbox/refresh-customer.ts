import { askAbout, storeSnapshot } from '../domain/money/fiat-customers/customer-snapshot.ts';
import type { StoredFiatCustomer } from '../domain/money/fiat-customers/fiat-customer.entity.ts';
import type { ControlContext } from './control-plane.ts';

/** Asks the provider about a customer and stores the answer, with the event of a change. Returns the current row. */
export async function refreshCustomer(
  { fiatProviders, log, ids, clock, change }: ControlContext,
  known: StoredFiatCustomer,
): Promise<StoredFiatCustomer> {
  const snapshot = await askAbout({ fiatProviders, log }, known);
  if (snapshot === undefined) return known;
  return change((em) => storeSnapshot({ em, ids, nowMs: clock.now() }, known, snapshot));
}
