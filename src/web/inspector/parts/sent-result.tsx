import { type Signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { WalletActionType } from '../../../generated/schemas.ts';
import type { SandboxOwner, SandboxSigner, SentRequest } from '../../../sandbox/generated/schemas.ts';
import { errorOf, signers } from '../api.ts';
import { hrefOf } from '../routes.ts';
import { ownerSigners } from '../wallet-facts.ts';
import { JsonTree } from './json-tree.tsx';
import { HttpStatus } from './label.tsx';
import { Marked } from './prose.tsx';
import { Failure } from './states.tsx';

const actionTypes: ReadonlySet<string> = new Set<WalletActionType>([
  'transfer',
  'swap',
  'earn_deposit',
  'earn_withdraw',
  'earn_incentive_claim',
  'earn_fee_collect',
  'payout',
]);

/** A request that a page sends: its response, or the reason why there is none. */
export interface Sending {
  readonly result: Signal<SentRequest | undefined>;
  readonly error: Signal<string>;
  readonly isRunning: Signal<boolean>;
  readonly run: (send: () => Promise<SentRequest>) => Promise<void>;
}

export function useSending(): Sending {
  const result = useSignal<SentRequest | undefined>(undefined);
  const error = useSignal('');
  const isRunning = useSignal(false);
  const run = async (send: () => Promise<SentRequest>): Promise<void> => {
    isRunning.value = true;
    error.value = '';
    try {
      result.value = await send();
    } catch (cause) {
      result.value = undefined;
      error.value = (cause as Error).message;
    } finally {
      isRunning.value = false;
    }
  };
  return { result, error, isRunning, run };
}

/** The response to a request that a page sent, with a link to the record of the request. */
export function SentResult({ sending }: { readonly sending: Sending }) {
  const { result, error } = sending;
  const sent = result.value;
  return (
    <div role="status">
      <Failure message={error.value} />
      {sent !== undefined && (
        <>
          <p>
            <HttpStatus of={sent.status} /> {isRefusal(sent.status) && errorOf(sent)}{' '}
            <StartedLink body={sent.body} />{' '}
            {sent.request_id !== null && <a href={hrefOf('requests', [sent.request_id])}>Show the request</a>}
          </p>
          {isRefusal(sent.status) && <Hint body={sent.body} />}
          {sent.body !== null && <JsonTree value={sent.body} label="Body of the response" />}
        </>
      )}
    </div>
  );
}

/**
 * A link to the action or the transaction that a request has started, or to the wallet or the policy that it returns.
 */
function StartedLink({ body }: { readonly body: unknown }) {
  const {
    id,
    wallet_id: wallet,
    type,
    data,
    chain_type: chainType,
    address,
    rules,
  } = (body ?? {}) as {
    id?: string;
    wallet_id?: string;
    type?: string;
    data?: { transaction_id?: string };
    chain_type?: string;
    address?: string;
    rules?: unknown;
  };
  if (data?.transaction_id !== undefined) {
    return <a href={hrefOf('transactions', [data.transaction_id])}>Open this transaction</a>;
  }
  if (id !== undefined && chainType !== undefined && address !== undefined) {
    return <a href={hrefOf('wallets', [id])}>Open this wallet</a>;
  }
  if (id !== undefined && chainType !== undefined && rules !== undefined) {
    return <a href={hrefOf('policies', [id])}>Open this policy</a>;
  }
  const isAction = id !== undefined && wallet !== undefined && actionTypes.has(type ?? '');
  return isAction ? <a href={hrefOf('actions', [id])}>Open this action</a> : null;
}

/** What the sandbox advises about a refusal. */
function Hint({ body }: { readonly body: unknown }) {
  const { data } = (body ?? {}) as { data?: { hint?: unknown } };
  return typeof data?.hint === 'string' ? (
    <p class="note">
      <Marked text={data.hint} />
    </p>
  ) : null;
}

/** Returns whether the status is an error. Status 0 means that the connection was closed without a response. */
export function isRefusal(status: number): boolean {
  return status >= 400 || status === 0;
}

/** Returns the chosen signers. Initially, they are the owner's, once the owner is known. */
export function useSigners(owner: SandboxOwner | null | undefined): Signal<readonly SandboxSigner[]> {
  const chosen = useSignal(ownerSigners(owner));
  useEffect(() => {
    chosen.value = ownerSigners(owner);
  }, [owner === undefined]);
  return chosen;
}

interface SignerChoiceProps {
  readonly chosen: Signal<readonly SandboxSigner[]>;
  /** The owner of the wallet that the request is about: null if it has none. Left out for other requests. */
  readonly owner?: SandboxOwner | null | undefined;
}

/** Check boxes that select the keys to sign with, or an explanation for a wallet that needs none. */
export function SignerChoice({ chosen, owner }: SignerChoiceProps) {
  if (owner === null) {
    return (
      <p class="quiet small">The wallet has no owner, so no signature is needed: the app secret is enough.</p>
    );
  }
  const toggle = (name: SandboxSigner): void => {
    chosen.value = chosen.value.includes(name)
      ? chosen.value.filter((other) => other !== name)
      : [...chosen.value, name];
  };
  return (
    <fieldset class="signers">
      <legend>Sign as</legend>
      {signers.map((name) => (
        <label key={name}>
          <input
            type="checkbox"
            name={name}
            checked={chosen.value.includes(name)}
            onChange={() => toggle(name)}
          />{' '}
          {name}
        </label>
      ))}
    </fieldset>
  );
}
