import { type Signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { PolicyReplay } from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { Label } from '../parts/label.tsx';
import { Failure } from '../parts/states.tsx';
import { everyPage, useLoaded } from '../parts/use-loaded.tsx';
import { UnitList } from '../requests/policy-tree.tsx';
import { route, setQuery } from '../router.tsx';
import { hrefOf } from '../routes.ts';
import { dateAndTime } from '../texts.ts';
import {
  type BenchCase,
  type BenchResult,
  benchText,
  caseOf,
  firstCase,
  hasPassed,
  judgeableOperations,
  loadCases,
  saveCases,
} from './bench.ts';
import { type Draft, judgedPart, readObject, replaced } from './draft.ts';

/** Saved requests with the decisions that are expected of a policy. They run against the draft. */
export function Bench({ id, draft }: { readonly id: string; readonly draft: Signal<Draft> }) {
  const cases = useSignal(loadCases(localStorage, id));
  const results = useSignal<readonly (BenchResult | undefined)[]>([]);
  const setCases = (changed: readonly BenchCase[]): void => {
    cases.value = changed;
    results.value = [];
    saveCases(localStorage, id, changed);
  };
  const failure = useSignal('');
  const { request: recorded = '' } = route.value.query;
  useEffect(() => {
    if (recorded === '') return;
    // The address names the request once, so that a reload does not add it again.
    setQuery({ request: '' });
    control('getRequest', { path: { request_id: recorded } }).then(
      ({ policy_trace: trace }) => {
        if (trace?.request == null) return;
        const { operation, request, method } = trace;
        setCases([
          ...cases.value,
          caseOf({ name: `Recorded ${method}`, operation, request, expected: 'allowed' }),
        ]);
      },
      (error: Error) => {
        failure.value = error.message;
      },
    );
  }, [recorded]);
  const run = async (): Promise<void> => {
    const { app_id } = await control('getConnection', {});
    const policy = judgedPart(draft.value);
    results.value = await Promise.all(
      cases.value.map(async ({ operation, request }): Promise<BenchResult> => {
        try {
          const body = { app_id, policy, operation, request: readObject(request, 'the request') };
          return await control('explainPolicy', { body: body as never });
        } catch (error) {
          return { error: (error as Error).message };
        }
      }),
    );
  };
  return (
    <section aria-label="Test bench">
      <p class="actions">
        <button type="button" onClick={() => setCases([...cases.value, firstCase(draft.value.chain_type)])}>
          Add a case
        </button>
        <button type="button" class="main" disabled={cases.value.length === 0} onClick={run}>
          Run
        </button>
        <span role="status">{benchText(cases.value, results.value)}</span>
      </p>
      <Failure message={failure.value} />
      {cases.value.map((each, index) => (
        <CaseBox
          key={index}
          of={each}
          result={results.value[index]}
          change={(changed) => setCases(replaced(cases.value, index, changed))}
        />
      ))}
    </section>
  );
}

function CaseBox(props: {
  readonly of: BenchCase;
  readonly result: BenchResult | undefined;
  readonly change: (changed?: BenchCase) => void;
}) {
  const { of: each, result, change } = props;
  return (
    <div class="card" role="group" aria-label={each.name}>
      <div class="fields">
        <label class="wide">
          Case
          <input
            value={each.name}
            onInput={({ currentTarget }) => change({ ...each, name: currentTarget.value })}
          />
        </label>
        <label>
          Operation
          <select
            value={each.operation}
            onChange={({ currentTarget }) => change({ ...each, operation: currentTarget.value })}
          >
            {judgeableOperations.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          Expected
          <select
            value={each.expected}
            onChange={({ currentTarget }) =>
              change({ ...each, expected: currentTarget.value as BenchCase['expected'] })
            }
          >
            <option>allowed</option>
            <option>denied</option>
          </select>
        </label>
      </div>
      <label class="stack">
        Request
        <textarea
          rows={7}
          spellcheck={false}
          value={each.request}
          onInput={({ currentTarget }) => change({ ...each, request: currentTarget.value })}
        />
      </label>
      <button type="button" class="plain" onClick={() => change()}>
        Remove the case
      </button>
      {result !== undefined && 'error' in result && <Failure message={result.error} />}
      {result !== undefined && 'decision' in result && (
        <>
          <p>
            <Label tone={hasPassed(each, result) ? 'good' : 'bad'}>
              {hasPassed(each, result) ? 'as expected' : 'not as expected'}
            </Label>{' '}
            {result.decision}
          </p>
          <div class="tree">
            {result.policies.map(({ policy_id: policy, units }) => (
              <UnitList key={policy} units={units} />
            ))}
          </div>
        </>
      )}
    </div>
  );
}

/** The decisions about a wallet's recorded requests that change under the draft. */
export function Replay({
  draft,
  preferred,
}: {
  readonly draft: Signal<Draft>;
  /** The wallet to begin with, such as one that has the policy. */
  readonly preferred?: string | undefined;
}) {
  const { value, error } = useLoaded(
    (signal) => everyPage((query) => control('listSandboxWallets', { query }, signal)),
    [],
  );
  const wallets = (value.value ?? []).filter(({ chain_type: type }) => type === draft.value.chain_type);
  const chosen = useSignal(preferred ?? '');
  const replayed = useSignal<PolicyReplay | undefined>(undefined);
  const failure = useSignal('');
  const replay = async (): Promise<void> => {
    const id = chosen.value === '' ? wallets[0]?.id : chosen.value;
    if (id === undefined) return;
    failure.value = '';
    replayed.value = undefined;
    try {
      replayed.value = await control('replayPolicy', {
        body: { wallet_id: id, draft: judgedPart(draft.value) as never },
      });
    } catch (cause) {
      failure.value = (cause as Error).message;
    }
  };
  return (
    <section aria-label="Replay">
      <Failure message={error.value === '' ? failure.value : error.value} />
      <div class="fields">
        <label class="wide">
          Wallet whose requests are replayed
          <select
            value={chosen.value === '' ? wallets[0]?.id : chosen.value}
            onChange={({ currentTarget }) => (chosen.value = currentTarget.value)}
          >
            {wallets.map(({ id, name, address }) => (
              <option key={id} value={id}>
                {name ?? address}
              </option>
            ))}
          </select>
        </label>
        <button type="button" class="main" disabled={wallets.length === 0} onClick={replay}>
          Replay
        </button>
      </div>
      {replayed.value !== undefined && <Changes of={replayed.value} />}
    </section>
  );
}

function Changes({ of: replayed }: { readonly of: PolicyReplay }) {
  return (
    <>
      <h3>
        {replayed.changed} of {replayed.judged} change
      </h3>
      <p>
        {replayed.newly_allowed} newly allowed, {replayed.newly_denied} newly denied, {replayed.skipped}{' '}
        skipped
      </p>
      <ul class="lines">
        {replayed.changes.map((change, index) => (
          <li key={index}>
            <Label tone={change.would_be === 'allowed' ? 'good' : 'bad'}>newly {change.would_be}</Label>{' '}
            <a href={hrefOf('requests', [change.request_id])}>{change.method}</a>{' '}
            {change.rule_name !== null && `by ${change.rule_name}, `}
            <span class="quiet">{dateAndTime(change.judged_at_ms)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
