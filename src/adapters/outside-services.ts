import type { CardIssuers, Custodians } from '../ports/cards.ts';
import type { Chains, Prices } from '../ports/chains.ts';
import type { FiatProviders } from '../ports/fiat.ts';

interface Options extends ErrorOptions {
  /** Whether a node may have received the call. Default: true. False if it was certainly not sent. */
  readonly mayHaveArrived?: boolean;
}

/** Thrown when no node could be reached, or its response was invalid. Whether a broadcast succeeded is unknown. */
export class ChainUnavailableError extends Error {
  /** Outages are expected from time to time, so logs omit the stack. */
  readonly isOutage = true;
  readonly mayHaveArrived: boolean;

  constructor(message: string, { mayHaveArrived = true, ...options }: Options = {}) {
    super(message, options);
    this.name = 'ChainUnavailableError';
    this.mayHaveArrived = mayHaveArrived;
  }
}

/**
 * Thrown when a provider could not be reached, or its response was invalid. Whether a request had an effect is unknown.
 */
export class ProviderUnavailableError extends Error {
  /** Marks the error for `isUnavailable` in `errors.ts`. */
  readonly isUnavailable = true;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ProviderUnavailableError';
  }
}

/** Thrown when the nodes of a chain return different results for the same query. The message does not name any node. */
export class NodesDisagreeError extends Error {
  /** Marks the error for `disagreementOf` in `errors.ts`. */
  readonly isDisagreement = true;

  constructor(caip2: string, what: string) {
    super(`the nodes of \`${caip2}\` disagree about ${what}`);
    this.name = 'NodesDisagreeError';
  }
}

/** Returns the body of a response as text; undefined when it is longer than `maxBytes`. */
export async function readBoundedText(response: Response, maxBytes: number): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The chains of a server without configured chains. Operations that need one return `not_supported`. */
export const noChains: Chains = { find: () => undefined };

/** The prices of a server without a price source. */
export const noPrices: Prices = { inUsd: async () => new Map() };

/** The custodians of a server without one. Custodial wallets are not supported. */
export const noCustodians: Custodians = { find: () => undefined };

/** The fiat providers of a server without one. Fiat operations are not supported. */
export const noFiatProviders: FiatProviders = { find: () => undefined };

/** The card issuers of a server without one. Cards are not supported. */
export const noCardIssuers: CardIssuers = { find: () => undefined };
