import { useSignal } from '@preact/signals';
import type { PolicyExplanation, PolicyReplay } from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { explainDraft, readJson, replayDraft } from '../policy-draft.ts';
import { UnitList } from '../requests/policy-tree.tsx';
import { route } from '../router.tsx';
import { dateAndTime } from '../texts.ts';

/** A page on which a policy can be edited, explained for one request, and replayed against the requests of a wallet. */
export function Page() {
  const [stored] = route.value.path;
  const policy = useSignal(stored === undefined ? explainDraft.policy : '');
  const request = useSignal(explainDraft.request);
  const wallet = useSignal('');
  const explained = useSignal<PolicyExplanation | undefined>(undefined);
  const replayed = useSignal<PolicyReplay | undefined>(undefined);
  const failure = useSignal('');
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    failure.value = '';
    explained.value = undefined;
    replayed.value = undefined;
    try {
      await work();
    } catch (error) {
      failure.value = (error as Error).message;
    }
  };
  const explain = () =>
    attempt(async () => {
      const judged =
        policy.value.trim() === '' && stored !== undefined
          ? { policy_id: stored }
          : { policy: readJson(policy.value, 'the policy') as never };
      const body = { ...judged, request: readJson(request.value, 'the request') };
      explained.value = await control('explainPolicy', { body });
    });
  const replay = () =>
    attempt(async () => {
      const draft = replayDraft(readJson(policy.value, 'the policy'));
      const body = { wallet_id: wallet.value.trim(), draft: draft as never };
      replayed.value = await control('replayPolicy', { body });
    });
  return (
    <div class="page">
      <h1>Policies</h1>
      <form onSubmit={(event) => event.preventDefault()}>
        <label class="stack">
          {stored === undefined ? 'Policy' : `Draft; empty: the stored policy ${stored}`}
          <textarea
            rows={16}
            spellcheck={false}
            value={policy}
            onInput={({ currentTarget }) => {
              policy.value = currentTarget.value;
            }}
          />
        </label>
        <label class="stack">
          Request
          <textarea
            rows={7}
            spellcheck={false}
            value={request}
            onInput={({ currentTarget }) => {
              request.value = currentTarget.value;
            }}
          />
        </label>
        <p class="actions">
          <button type="button" class="main" onClick={explain}>
            Explain
          </button>
        </p>
        <div class="fields">
          <label class="wide">
            Wallet whose requests are replayed
            <input
              value={wallet}
              onInput={({ currentTarget }) => {
                wallet.value = currentTarget.value;
              }}
            />
          </label>
          <button type="button" onClick={replay}>
            Replay
          </button>
        </div>
      </form>
      {failure.value !== '' && <p role="alert">{failure.value}</p>}
      {explained.value !== undefined && <Explanation explained={explained.value} />}
      {replayed.value !== undefined && <Replay replayed={replayed.value} />}
    </div>
  );
}

function Explanation({ explained }: { readonly explained: PolicyExplanation }) {
  return (
    <section aria-label="Explanation">
      <h2>{explained.decision}</h2>
      <ul class="tree">
        {explained.policies.map((policy) => (
          <li key={policy.policy_id}>
            <span class={policy.allowed ? 'good' : 'bad'}>{policy.allowed ? 'allows' : 'denies'}</span> policy{' '}
            {policy.policy_id}
            <UnitList units={policy.units} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Replay({ replayed }: { readonly replayed: PolicyReplay }) {
  return (
    <section aria-label="Replay">
      <h2>
        {replayed.changed} of {replayed.judged} change
      </h2>
      <p>
        {replayed.newly_allowed} newly allowed, {replayed.newly_denied} newly denied, {replayed.skipped}{' '}
        skipped
      </p>
      <ul>
        {replayed.changes.map((change, index) => (
          <li key={index}>
            {dateAndTime(change.judged_at_ms)} {change.method}: {change.was}, would be{' '}
            <span class={change.would_be === 'allowed' ? 'good' : 'bad'}>{change.would_be}</span>
            {change.rule_name !== null && ` by ${change.rule_name}`}
          </li>
        ))}
      </ul>
    </section>
  );
}
