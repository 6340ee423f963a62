import { type Signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { PolicyLint, SandboxSigner } from '../../../sandbox/generated/schemas.ts';
import { ControlError, control, issuesIn } from '../control.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { isRefusal, SentResult, SignerChoice, useSending } from '../parts/sent-result.tsx';
import { Failure } from '../parts/states.tsx';
import { goTo } from '../router.tsx';
import { hrefOf } from '../routes.ts';
import type { NamedParts } from './conditions.ts';
import {
  createBody,
  type Draft,
  draftIssues,
  draftText,
  type Issue,
  judgedPart,
  type Rule,
  readDraft,
  updateBody,
} from './draft.ts';
import { Issues, RuleForm } from './rule-form.tsx';

const LINT_DELAY_MS = 500;

interface EditorProps {
  readonly draft: Signal<Draft>;
  readonly names: NamedParts;
  /** The stored policy. Undefined for a new one. */
  readonly stored: { readonly id: string; readonly owner_id: string | null } | undefined;
  readonly onSaved: () => void;
}

/**
 * The form of a policy's rules, its JSON, the findings of lint, and the buttons that save and delete. A change of the
 * form also changes the JSON, and the other way round.
 */
export function Editor({ draft, names, stored, onSaved }: EditorProps) {
  const text = useSignal(draftText(draft.value));
  const fault = useSignal('');
  const { lint, issues } = useLint(draft.value);
  const change = (changed: Draft): void => {
    draft.value = changed;
    text.value = draftText(changed);
    fault.value = '';
  };
  const edit = (edited: string): void => {
    text.value = edited;
    try {
      const read = readDraft(edited);
      if (stored !== undefined && read.chain_type !== draft.value.chain_type) {
        throw new Error('the chain_type of a stored policy cannot change');
      }
      draft.value = read;
      fault.value = '';
    } catch (error) {
      fault.value = (error as Error).message;
    }
  };
  const elsewhere = issues.filter(({ pointer }) => !pointer.startsWith('/rules/'));
  return (
    <>
      <RuleForm
        draft={draft.value}
        names={names}
        issues={issues}
        isStored={stored !== undefined}
        change={change}
      />
      <Issues issues={elsewhere} />
      <Findings lint={lint} add={(rule) => change({ ...draft.value, rules: [...draft.value.rules, rule] })} />
      <label class="stack">
        JSON
        <textarea
          rows={16}
          spellcheck={false}
          value={text}
          onInput={({ currentTarget }) => edit(currentTarget.value)}
        />
      </label>
      <Failure message={fault.value} />
      <SaveBox draft={draft.value} stored={stored} isFaulty={fault.value !== ''} onSaved={onSaved} />
    </>
  );
}

/** Lints a draft when it has not changed for half a second. */
function useLint(draft: Draft): { lint: PolicyLint | undefined; issues: readonly Issue[] } {
  const lint = useSignal<PolicyLint | undefined>(undefined);
  const issues = useSignal<readonly Issue[]>([]);
  useEffect(() => {
    const leaving = new AbortController();
    const run = async (): Promise<void> => {
      try {
        const { app_id } = await control('getConnection', {}, leaving.signal);
        const body = { app_id, policy: judgedPart(draft) as never };
        const found = await control('lintPolicy', { body }, leaving.signal);
        if (leaving.signal.aborted) return;
        lint.value = found;
        issues.value = [];
      } catch (error) {
        if (leaving.signal.aborted) return;
        lint.value = undefined;
        issues.value =
          error instanceof ControlError
            ? draftIssues(error, '/policy')
            : [{ pointer: '', message: (error as Error).message }];
      }
    };
    const timer = setTimeout(() => void run(), LINT_DELAY_MS);
    return () => {
      clearTimeout(timer);
      leaving.abort();
    };
  }, [draft]);
  return { lint: lint.value, issues: issues.value };
}

function Findings({ lint, add }: { lint: PolicyLint | undefined; add: (rule: Rule) => void }) {
  if (lint === undefined) return null;
  return (
    <section aria-label="Lint">
      <h3>Lint</h3>
      {lint.gaps.length === 0 && <p class="good">Nothing that is denied passes in another way.</p>}
      {lint.gaps.map(({ kind, message, passes, rule_name: rule, remedy }, index) => (
        <div key={index} class="note warn">
          <strong>{kind.replaceAll('_', ' ')}</strong>: {message}
          {rule !== null && ` (rule ${rule})`}
          <details>
            <summary>A request that passes</summary>
            <JsonTree value={passes} label={`Request that passes, finding ${index + 1}`} />
          </details>
          {remedy?.setting !== undefined && <p>The app setting {remedy.setting} denies it.</p>}
          {remedy?.rule !== undefined && (
            <button type="button" onClick={() => add(remedy.rule as object as Rule)}>
              Add the rule that denies it
            </button>
          )}
        </div>
      ))}
    </section>
  );
}

function SaveBox(props: Omit<EditorProps, 'draft' | 'names'> & { draft: Draft; isFaulty: boolean }) {
  const { draft, stored, isFaulty, onSaved } = props;
  const sending = useSending();
  const signers = useSignal<readonly SandboxSigner[]>(
    stored === undefined || stored.owner_id === null ? [] : ['alice'],
  );
  const sign = { sign_as: [...signers.value] };
  const sent = async (body: object): Promise<{ id?: string } | undefined> => {
    await sending.run(() => control('sendRequest', { body: body as never }));
    const result = sending.result.value;
    if (result === undefined || isRefusal(result.status)) return undefined;
    onSaved();
    return result.body as { id?: string };
  };
  const save = async (): Promise<void> => {
    if (stored !== undefined) {
      const path = { policy_id: stored.id };
      await sent({ ...sign, operation: 'updatePolicy', path, body: updateBody(draft) });
      return;
    }
    const made = await sent({ operation: 'createPolicy', path: {}, body: createBody(draft) });
    if (made?.id !== undefined) goTo(hrefOf('policies', [made.id]));
  };
  const remove = async (): Promise<void> => {
    const path = { policy_id: stored!.id };
    if ((await sent({ ...sign, operation: 'deletePolicy', path })) !== undefined) goTo(hrefOf('policies'));
  };
  return (
    <section aria-label="Save">
      {stored !== undefined && stored.owner_id !== null && <SignerChoice chosen={signers} />}
      <p class="actions">
        <button type="button" class="main" disabled={isFaulty || sending.isRunning.value} onClick={save}>
          {stored === undefined ? 'Create the policy' : 'Save'}
        </button>
        {stored !== undefined && (
          <ConfirmButton question={`Delete ${draft.name}?`} onConfirm={() => void remove()}>
            Delete
          </ConfirmButton>
        )}
      </p>
      <Issues issues={issuesIn(sending.result.value?.body)} />
      <SentResult sending={sending} />
    </section>
  );
}
