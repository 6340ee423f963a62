import type { Prices } from '../../../ports/chains.ts';
import type { FiatEnvironment, FiatRefusal } from '../../../ports/fiat.ts';
import type { Clock, Ids } from '../../../ports/runtime.ts';
import type { ChainStore } from '../chains/store.ts';
import type { Simulated } from '../chains/world.ts';

/** The components that one environment of the simulated provider uses. */
export interface FiatParts {
  readonly environment: FiatEnvironment;
  readonly clock: Clock;
  readonly ids: Pick<Ids, 'uuid'>;
  readonly prices: Prices;
  readonly store: ChainStore;
  /** Returns a chain once it has processed all due blocks, or undefined if the chain is not simulated. */
  chain(caip2: string): Promise<Simulated | undefined>;
  /** Returns the URL of a customer's hosted page. */
  pageOf(token: string): string;
}

/** CHOICE: how long the simulated provider takes for each decision and each movement of money. */
export const STEP_MS = 2000;

export function refuse(fault: FiatRefusal['fault'], message: string, pointer?: string): FiatRefusal {
  return { fault, message, ...(pointer === undefined ? {} : { pointer }) };
}
