import { useSignal } from '@preact/signals';
import type { SandboxSigner } from '../../../sandbox/generated/schemas.ts';
import { newSuffix, withFreshNames } from '../../docs/sign-payload.ts';
import {
  type ApiDocument,
  type ApiOperation,
  draftRequest,
  matchingOperations,
  operationsOf,
  readDraft,
} from '../api-reference/document.ts';
import { control } from '../control.ts';
import { DetailPanel } from '../parts/detail-panel.tsx';
import { CodeBlock } from '../parts/json-tree.tsx';
import { Prose } from '../parts/prose.tsx';
import { SentResult, SignerChoice, useSending } from '../parts/sent-result.tsx';
import { Failure, Skeleton } from '../parts/states.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { route, setQuery } from '../router.tsx';
import { hrefOf } from '../routes.ts';

/** The operations of the API: descriptions, examples, and a form that sends requests. */
export function Page() {
  const { value, error } = useLoaded(async (signal) => {
    const response = await fetch('/openapi.json', { signal });
    return operationsOf((await response.json()) as ApiDocument);
  }, []);
  const { path, query } = route.value;
  const [opened] = path;
  const all = value.value ?? [];
  const operation = all.find(({ id }) => id === opened);
  const shown = matchingOperations(all, query.text ?? '');
  return (
    <div class={`page split ${opened === undefined ? '' : 'opened'}`}>
      <section class="list" aria-label="All operations">
        <div class="title">
          <h1>API</h1>
          <span class="count" role="status">
            {shown.length} {shown.length === 1 ? 'operation' : 'operations'}
          </span>
        </div>
        <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
          <label class="wide">
            Filter by operation
            <input
              type="search"
              value={query.text ?? ''}
              onInput={({ currentTarget }) => setQuery({ text: currentTarget.value })}
            />
          </label>
        </form>
        <Failure message={error.value} />
        {value.value === undefined && error.value === '' && <Skeleton lines={12} />}
        <ul class="operations" tabIndex={0} aria-label="Operations">
          {shown.map(({ id, summary }) => (
            <li key={id}>
              <a href={hrefOf('api', [id], query)} aria-current={id === opened ? 'true' : undefined}>
                {id}
              </a>{' '}
              <span class="quiet">{summary}</span>
            </li>
          ))}
        </ul>
      </section>
      {opened !== undefined && (
        <DetailPanel
          what="Operation"
          id={opened}
          back={hrefOf('api', [], query)}
          title={operation?.summary ?? opened}
          sub={
            operation !== undefined && (
              <>
                <span class="method">{operation.method}</span> <code>{operation.path}</code>
              </>
            )
          }
        >
          {operation !== undefined && <Operation key={operation.id} operation={operation} />}
        </DetailPanel>
      )}
    </div>
  );
}

function Operation({ operation }: { readonly operation: ApiOperation }) {
  const { id, tag, description, examples } = operation;
  const text = useSignal(draftRequest(withGiven(operation), freshly(examples[0]?.value)));
  const chosen = useSignal<readonly SandboxSigner[]>([]);
  const sending = useSending();
  const send = (event: Event): void => {
    event.preventDefault();
    void sending.run(() =>
      control('sendRequest', {
        body: { operation: id, ...readDraft(text.value), sign_as: [...chosen.value] },
      }),
    );
  };
  return (
    <>
      <p>
        <a href={`/docs#/${encodeURIComponent(tag)}/${id}`}>Reference of {id}</a>
      </p>
      {description !== '' && <Prose text={description} />}
      <Differences operation={id} />
      <form onSubmit={send} aria-label="Send">
        {examples.length > 0 && (
          <div class="quick">
            {examples.map((example) => (
              <button
                type="button"
                key={example.name}
                onClick={() => {
                  text.value = draftRequest(withGiven(operation), freshly(example.value));
                }}
              >
                {example.title}
              </button>
            ))}
          </div>
        )}
        <label class="stack">
          Request
          <textarea
            rows={14}
            spellcheck={false}
            value={text}
            onInput={({ currentTarget }) => {
              text.value = currentTarget.value;
            }}
          />
        </label>
        <SignerChoice chosen={chosen} />
        <button type="submit" class="main" disabled={sending.isRunning.value}>
          Send
        </button>
      </form>
      <SentResult sending={sending} />
      {operation.responses.map(({ status, title, value }) => (
        <details key={`${status} ${title}`}>
          <summary>
            {status} {title}
          </summary>
          <CodeBlock value={value} label={`Example ${status} ${title}`} />
        </details>
      ))}
    </>
  );
}

/** Returns an example that can be sent more than once. */
function freshly(example: unknown): unknown {
  return withFreshNames(example, newSuffix());
}

/** Returns the operation with the values of path parameters that the address contains. */
function withGiven(operation: ApiOperation): ApiOperation {
  const given = Object.keys(operation.parameters).flatMap((name) => {
    const value = route.value.query[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { ...operation, parameters: { ...operation.parameters, ...Object.fromEntries(given) } };
}

/** The simulated parts of an operation, and the choices that Custos made where the specification is silent. */
function Differences({ operation }: { readonly operation: string }) {
  const { value, error } = useLoaded(
    (signal) => control('listDivergences', { query: { operation } }, signal),
    [operation],
  );
  const found = value.value?.data[0];
  if (error.value !== '') return <p role="alert">{error.value}</p>;
  if (found === undefined) return null;
  const { simulated, decisions } = found;
  if (simulated.length === 0 && decisions.length === 0) return null;
  return (
    <details>
      <summary>
        Where it differs: {simulated.length} simulated, {decisions.length} decided by this server
      </summary>
      <ul>
        {simulated.map(({ name, sandbox, production, setting }) => (
          <li key={name}>
            <Prose text={`Simulated, \`${name}\`: ${sandbox}`} />
            <Prose text={`In \`custos serve\`: ${production}`} />
            {setting !== null && <Prose text={`Setting: ${setting}`} />}
          </li>
        ))}
        {decisions.map(({ text, path, symbol }) => (
          <li key={`${path} ${symbol} ${text}`}>
            <Prose text={`Decided in \`${path}\`${symbol === null ? '' : ` (\`${symbol}\`)`}: ${text}`} />
          </li>
        ))}
      </ul>
    </details>
  );
}
