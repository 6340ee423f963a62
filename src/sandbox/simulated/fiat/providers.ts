import { ProviderUnavailableError } from '../../../adapters/outside-services.ts';
import type { FiatEnvironment, FiatProvider, FiatProviders } from '../../../ports/fiat.ts';
import { simulateBankAccounts } from './bank-accounts.ts';
import { type Book, booksOf } from './books.ts';
import { findByToken } from './customer-rows.ts';
import { type BankDeposit, decideDeposit, depositsAfter, receive } from './deposits.ts';
import {
  type Decision,
  decide,
  type HostedPage,
  hostedPage,
  type PageAction,
  simulateIdentityOffice,
  useHostedPage,
} from './identity-office.ts';
import type { FiatParts } from './parts.ts';
import { decidePayout, type PayoutOutcome, simulatePayouts } from './payouts.ts';
import { simulateVirtualAccounts } from './virtual-accounts.ts';

/*
 * SIMULATED fiatProviders: the bank and the identity office are simulated: each step takes two seconds of the clock,
 * and submitted data is not stored. PRODUCTION: a provider with Bridge's API; 400 `not_supported` without one.
 * SETTING: `CUSTOS_BRIDGE_*` for `custos serve`.
 */

/** Lets testers control the bank and the identity office. Ids are the provider's ids. */
export interface FiatControls {
  decide(environment: FiatEnvironment, customerId: string, decision: Decision): Promise<boolean>;
  /** Returns the content of the hosted page, or undefined for an unknown token. */
  page(token: string): Promise<(HostedPage & { readonly environment: FiatEnvironment }) | undefined>;
  /** Takes a customer's action on the hosted page. Returns false if the page does not offer it. */
  usePage(token: string, action: PageAction): Promise<boolean>;
  /** Records an incoming payment. Returns undefined for an unknown account, and `amount` for an invalid amount. */
  receive(environment: FiatEnvironment, deposit: BankDeposit): Promise<{ id: string } | 'amount' | undefined>;
  decideDeposit(
    environment: FiatEnvironment,
    id: string,
    outcome: 'completed' | 'refunded',
  ): Promise<boolean>;
  decidePayout(environment: FiatEnvironment, id: string, outcome: PayoutOutcome): Promise<boolean>;
  books(): Promise<readonly Book[]>;
  isUp(): boolean;
  setUp(isUp: boolean): void;
}

/** Simulates the provider `bridge` in both environments, each with its own customers, accounts and books. */
export function simulateFiatProviders(
  open: () => Promise<Omit<FiatParts, 'environment'>>,
  names: readonly FiatEnvironment[],
): { providers: FiatProviders; controls: FiatControls } {
  let up = true;
  const isUp = (): boolean => up;
  const partsOf = async (environment: FiatEnvironment): Promise<FiatParts> => ({
    ...(await open()),
    environment,
  });
  const environments = Object.fromEntries(
    names.map((name) => [name, simulateProvider(() => partsOf(name), isUp)]),
  );
  const byToken = async (token: string) => {
    const { store } = await open();
    const found = findByToken(store, token);
    return found && { ...found, parts: await partsOf(found.environment) };
  };
  const controls: FiatControls = {
    decide: async (environment, id, decision) =>
      decide(await partsOf(environment), id, decision) !== undefined,
    async page(token) {
      const found = await byToken(token);
      const page = found && hostedPage(found.parts, found.id);
      return page && { ...page, environment: found.environment };
    },
    async usePage(token, action) {
      const found = await byToken(token);
      return found !== undefined && useHostedPage(found.parts, found.id, action);
    },
    receive: async (environment, deposit) => receive(await partsOf(environment), deposit),
    decideDeposit: async (environment, id, outcome) => decideDeposit(await partsOf(environment), id, outcome),
    decidePayout: async (environment, id, outcome) => decidePayout(await partsOf(environment), id, outcome),
    books: async () => booksOf((await open()).store),
    isUp,
    setUp: (next) => {
      up = next;
    },
  };
  const providers: FiatProviders = {
    find: (provider, environment) => (provider === 'bridge' ? environments[environment] : undefined),
  };
  return { providers, controls };
}

function simulateProvider(makeParts: () => Promise<FiatParts>, isUp: () => boolean): FiatProvider {
  const ready = async (): Promise<FiatParts> => {
    if (!isUp()) throw new ProviderUnavailableError('the simulated provider is down');
    return makeParts();
  };
  const office = async () => simulateIdentityOffice(await ready());
  const bankAccounts = async () => simulateBankAccounts(await ready());
  const virtualAccounts = async () => simulateVirtualAccounts(await ready());
  const payouts = async () => simulatePayouts(await ready());
  return {
    // All chains of the sandbox are simulated, testnets and mainnets alike.
    networks: 'all',
    openCustomer: async (order) => (await office()).openCustomer(order),
    termsLink: async (...args) => (await office()).termsLink(...args),
    verificationLink: async (...args) => (await office()).verificationLink(...args),
    submit: async (submission) => (await office()).submit(submission),
    customer: async (id) => (await office()).customer(id),
    registerBankAccount: async (order) => (await bankAccounts()).registerBankAccount(order),
    removeBankAccount: async (...args) => (await bankAccounts()).removeBankAccount(...args),
    openVirtualAccount: async (order) => (await virtualAccounts()).openVirtualAccount(order),
    virtualAccount: async (...args) => (await virtualAccounts()).virtualAccount(...args),
    closeVirtualAccount: async (...args) => (await virtualAccounts()).closeVirtualAccount(...args),
    depositsAfter: async (cursor) => depositsAfter(await ready(), cursor),
    openPayout: async (order) => (await payouts()).openPayout(order),
    cancelPayout: async (id) => (await payouts()).cancelPayout(id),
    payout: async (id) => (await payouts()).payout(id),
    // The provider sends no notifications; everything is polled.
    readHint: () => undefined,
  };
}
