import { ProviderUnavailableError } from '../../../adapters/outside-services.ts';
import { checksumAddress } from '../../../engine/signing/ethereum/signer.ts';
import type { CardEnvironment, CardIssuer, CardIssuers, CardProgram } from '../../../ports/cards.ts';
import {
  type CardDetails,
  cardOfKey,
  makeEphemeralKey,
  numberOf,
  publishableKey,
  securityCodeOf,
} from './card-secrets.ts';
import { change, findCard, issue, replace } from './cards.ts';
import { type CardParts, issuerAddress, refuse } from './parts.ts';
import {
  type Authorization,
  authorize,
  capture,
  type PaymentFault,
  paymentsOf,
  postedOf,
  refund,
  release,
  type TestPayment,
} from './payments.ts';

/*
 * SIMULATED cardIssuers: the issuer of cards and the merchants are simulated; payments take money from the
 * wallet on simulated EVM chains.
 * PRODUCTION: no issuer is connected: 400 `not_supported`.
 * SETTING: none.
 */

/** Lets testers act as merchants. Ids are the issuer's ids. Results are undefined for an unknown card or payment. */
export interface CardControls {
  authorize(environment: CardEnvironment, order: Authorization): Promise<TestPayment | undefined>;
  capture(id: string, cents: bigint | undefined): Promise<TestPayment | PaymentFault | undefined>;
  release(id: string, status: 'reversed' | 'expired'): Promise<TestPayment | PaymentFault | undefined>;
  refund(
    id: string,
    order: { readonly cents: bigint | undefined; readonly reference: string },
  ): Promise<TestPayment | PaymentFault | undefined>;
  /**
   * Returns what the issuer shows to a page with this nonce, or undefined for a wrong or expired key.
   *
   * NOTE: only code in the same process may call it: no response of the server contains a card number.
   */
  reveal(
    environment: CardEnvironment,
    key: { readonly key: string; readonly nonce: string },
  ): Promise<CardDetails | undefined>;
  isUp(): boolean;
  setUp(isUp: boolean): void;
}

/** CHOICE: the bank and the documents of the simulated program are fictitious. */
const program: Omit<CardProgram, 'publishableKey' | 'spenderAddress'> = {
  logoUrl: null,
  disclosureUrl: 'https://issuer.example/electronic-disclosure',
  bank: {
    name: 'Example Bank',
    agreements: [
      {
        id: 'cardholder-agreement-1',
        name: 'Cardholder Agreement',
        url: 'https://issuer.example/cardholder-agreement',
      },
    ],
  },
};

/** Creates one card issuer per environment. Each has its own cards, and its own money on the simulated chains. */
export function simulateCardIssuers(
  open: () => Promise<Omit<CardParts, 'environment'>>,
  names: readonly CardEnvironment[],
): { issuers: CardIssuers; controls: CardControls } {
  let isUp = true;
  const partsOf = async (environment: CardEnvironment): Promise<CardParts> => ({
    ...(await open()),
    environment,
  });
  const issuers = new Map(
    names.map((name) => [
      name,
      simulateIssuer(async () => {
        if (!isUp) throw new ProviderUnavailableError('the simulated card issuer is down');
        return partsOf(name);
      }),
    ]),
  );
  /** Runs `work` in the environment that has the payment. */
  const withPayment = async <Done>(
    id: string,
    work: (parts: CardParts) => Promise<Done>,
  ): Promise<Done | undefined> => {
    const { store } = await open();
    const found = store.first<{ environment: CardEnvironment }>(
      'select environment from issuer_payments where id = ?',
      id,
    );
    return found && work(await partsOf(found.environment));
  };
  const controls: CardControls = {
    authorize: async (environment, order) => authorize(await partsOf(environment), order),
    capture: (id, cents) => withPayment(id, (parts) => capture(parts, id, cents)),
    release: (id, status) => withPayment(id, (parts) => release(parts, id, status)),
    refund: (id, order) => withPayment(id, (parts) => refund(parts, id, order)),
    reveal: async (environment, key) => reveal(await partsOf(environment), key),
    isUp: () => isUp,
    setUp: (next) => {
      isUp = next;
    },
  };
  return { issuers: { find: (environment) => issuers.get(environment) }, controls };
}

function simulateIssuer(ready: () => Promise<CardParts>): CardIssuer {
  return {
    // All chains of the sandbox are simulated, testnets and mainnets alike.
    networks: 'all',
    verifiedBy: 'bridge',
    endorsement: 'cards',
    async program() {
      const parts = await ready();
      const spender = issuerAddress(parts.environment);
      return {
        ...program,
        publishableKey: await publishableKey(parts),
        spenderAddress: checksumAddress(spender.slice(2)),
      };
    },
    issue: async (order) => issue(await ready(), order),
    change: async (cardId, wanted) => change(await ready(), cardId, wanted),
    replace: async (cardId, reason) => replace(await ready(), cardId, reason),
    payments: async (cardId, page) => paymentsOf(await ready(), cardId, page),
    posted: async (cardId, query) => postedOf(await ready(), cardId, query),
    async ephemeralKey(cardId, nonce) {
      const parts = await ready();
      const card = findCard(parts, cardId);
      if (card === undefined || card.status === 'canceled') return refuse('state', 'the card is canceled');
      return makeEphemeralKey(parts, { cardId, nonce, nowMs: parts.clock.now() });
    },
  };
}

function reveal(
  parts: CardParts,
  { key, nonce }: { readonly key: string; readonly nonce: string },
): CardDetails | undefined {
  const cardId = cardOfKey(parts, { key, nonce, nowMs: parts.clock.now() });
  const card = cardId === undefined ? undefined : findCard(parts, cardId);
  if (card === undefined || card.status === 'canceled') return undefined;
  const { id, exp_month: expMonth, exp_year: expYear } = card;
  return { number: numberOf(parts, id), cvc: securityCodeOf(parts, id), expMonth, expYear };
}
