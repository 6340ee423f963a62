import { type Signal, useSignal } from '@preact/signals';
import { BookOpen, Wrench } from 'lucide';
import { operations as controlOperations } from '../../../sandbox/generated/operations.ts';
import type {
  RecordedExchange,
  RefusalProblem,
  RefusalRepair,
  SentRequest,
} from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { Copy, Named } from '../parts/copy.tsx';
import { Fact } from '../parts/fact.tsx';
import { Icon } from '../parts/icon.tsx';
import { Marked, Prose } from '../parts/prose.tsx';
import { type Sending, SentResult, useSending } from '../parts/sent-result.tsx';
import { route, setQuery } from '../router.tsx';
import { hrefOf } from '../routes.ts';

/**
 * Why a request was refused: every problem with what was expected and what came, the line at fault, and buttons that
 * repair it. Nothing for a request that was not refused.
 */
export function Refusal({ exchange }: { readonly exchange: RecordedExchange }) {
  const sending = useSending();
  const note = useSignal('');
  const { why } = exchange;
  if (why === null) return null;
  const evidence = Object.entries(why.evidence).filter(([, value]) => value !== null);
  return (
    <section class="note bad why" aria-label="Why it was refused">
      {why.problems.map((problem, index) => (
        <Problem key={index} problem={problem} />
      ))}
      <Denials exchange={exchange} />
      {why.repairs.length > 0 && (
        <ul class="repairs" aria-label="Repairs">
          {why.repairs.map((repair) => (
            <li key={repair.title}>
              <Repair id={exchange.id} repair={repair} sending={sending} note={note} />
            </li>
          ))}
        </ul>
      )}
      <p role="status">{note.value}</p>
      <SentResult sending={sending} />
      {why.docs !== null && (
        <p class="small">
          <a href={why.docs} class="named">
            <Icon of={BookOpen} /> About {exchange.code}
          </a>
        </p>
      )}
      {evidence.length > 0 && (
        <details>
          <summary>Evidence</summary>
          <dl>
            {evidence.map(([name, value]) => (
              <Fact key={name} name={name.replaceAll('_', ' ')}>
                <Evidence value={value} />
              </Fact>
            ))}
          </dl>
        </details>
      )}
    </section>
  );
}

function Problem({ problem }: { readonly problem: RefusalProblem }) {
  const { subject, expected, came, at_fault: place, text, next_step: next } = problem;
  return (
    <div class="problem">
      <h3>
        <Marked text={subject[0]!.toUpperCase() + subject.slice(1)} />
      </h3>
      <Prose text={text} />
      <dl>
        <Fact name="Expected">
          <Prose text={expected} />
        </Fact>
        <Fact name="Got">
          <Prose text={came} />
        </Fact>
        {place !== null && (
          <Fact name="At fault">
            <code>
              {place.in}
              {place.pointer}
            </code>
          </Fact>
        )}
      </dl>
      <NextStep text={next} />
    </div>
  );
}

/** How the texts of signatures mention the inspector. */
const SHOWN_HERE = ', which the inspector shows too';

function NextStep({ text }: { readonly text: string }) {
  const [before = '', after] = text.split(SHOWN_HERE);
  if (after === undefined) return <Prose text={text} />;
  return (
    <p>
      <Marked text={before} />, which{' '}
      <a href={hrefOf('requests', route.value.path, { ...route.value.query, tab: 'signature' })}>
        the tab Signature
      </a>{' '}
      shows
      <Marked text={after} />
    </p>
  );
}

/** Links to the policies that denied the request. */
function Denials({ exchange: { policy_trace: trace } }: { readonly exchange: RecordedExchange }) {
  const denying = trace?.policies?.filter(({ allowed }) => !allowed) ?? [];
  const ids = [...new Set(denying.map(({ policy_id: id }) => id))];
  if (ids.length === 0) return null;
  return (
    <dl>
      <Fact name="Denied by">
        {ids.map((id) => (
          <span key={id} class="item">
            policy <Named id={id} what="the policy's id" href={hrefOf('policies', [id])} />
          </span>
        ))}
      </Fact>
    </dl>
  );
}

interface RepairProps {
  /** The id of the refused request. */
  readonly id: string;
  readonly repair: RefusalRepair;
  readonly sending: Sending;
  readonly note: Signal<string>;
}

function Repair({ id, repair, sending, note }: RepairProps) {
  if (repair.kind === 'command') {
    return (
      <>
        <Marked text={repair.title} />: <code>{repair.command}</code>{' '}
        <Copy text={repair.command} what="the command" />
      </>
    );
  }
  const press = async (): Promise<void> => {
    note.value = '';
    if (repair.kind === 'repeat') {
      await sending.run(() => control('replayRequest', { path: { request_id: id }, body: repair.repeat }));
    } else if (repair.operation === 'getPolicyTrace') {
      setQuery({ tab: 'policy' });
    } else if (Object.hasOwn(controlOperations, repair.operation)) {
      note.value = await callControl(repair);
    } else {
      await sending.run(() => sendApi(repair));
    }
  };
  return (
    <button type="button" disabled={sending.isRunning.value} onClick={() => void press()}>
      <Icon of={Wrench} />
      <span>
        <Marked text={repair.title} />
      </span>
    </button>
  );
}

type Call = Extract<RefusalRepair, { kind: 'call' }>;

/** Calls an operation of the control plane, and returns what to say about it. */
async function callControl({ title, operation, path, body }: Call): Promise<string> {
  const input = { ...(path === undefined ? {} : { path }), ...(body === undefined ? {} : { body }) };
  try {
    await control(operation as 'setClock', input as { body: object });
    return `${title}: done`;
  } catch (error) {
    return (error as Error).message;
  }
}

function sendApi({ operation, path, body }: Call): Promise<SentRequest> {
  return control('sendRequest', {
    body: { operation, path: path ?? {}, ...(body === undefined ? {} : { body }) },
  });
}

function Evidence({ value }: { readonly value: unknown }) {
  return (
    <>
      {(Array.isArray(value) ? value : [value]).map((item, index) => (
        <span key={index} class="item">
          {typeof item === 'string' ? item : JSON.stringify(item)}
        </span>
      ))}
    </>
  );
}
