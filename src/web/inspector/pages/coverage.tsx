import type { SandboxCoverage, SandboxCoverageRow } from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { coverageMap, strengthOf } from '../coverage-map.ts';
import { Label } from '../parts/label.tsx';
import { Failure, Skeleton } from '../parts/states.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { route, setQuery } from '../router.tsx';
import { hrefOf } from '../routes.ts';
import { shareText, shownOperations } from '../texts.ts';

/** The parts of the API document that the recorded requests have covered. */
export function Page() {
  const [opened] = route.value.path;
  const { value, error, reload } = useLoaded(
    (signal) =>
      control('measureCoverage', { query: opened === undefined ? {} : { operation: opened } }, signal),
    [opened],
  );
  const coverage = value.value;
  return (
    <div class="page">
      <div class="title">
        <h1>Coverage</h1>
        <div class="actions">
          <button type="button" onClick={reload}>
            Refresh
          </button>
        </div>
      </div>
      <p class="quiet">
        What the requests that the sandbox keeps used of the contract. <code>custos coverage</code> writes
        reports.
      </p>
      <Failure message={error.value} retry={reload} />
      {coverage === undefined && error.value === '' && <Skeleton />}
      {coverage !== undefined && opened === undefined && <Whole coverage={coverage} />}
      {coverage !== undefined && opened !== undefined && <One operation={opened} rows={coverage.rows} />}
    </div>
  );
}

function Whole({ coverage }: { readonly coverage: SandboxCoverage }) {
  const { figures, requests, unknown_requests: unknown, undocumented, rows } = coverage;
  return (
    <>
      <p role="status">
        {requests} requests{unknown > 0 && `, ${unknown} of them to no operation of the contract`}
      </p>
      <table class="plain" aria-label="Figures">
        <tbody>
          {figures.map((figure) => (
            <tr key={figure.dimension}>
              <th scope="row">{figure.title}</th>
              <td>
                <progress aria-label={figure.title} max={figure.total || 1} value={figure.covered} />
              </td>
              <td class="whole">{shareText(figure)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {undocumented.length > 0 && (
        <section aria-label="Not in the contract">
          <h2>Not in the contract</h2>
          <ul>
            {undocumented.map(({ name, count }) => (
              <li key={name}>
                <Label tone="bad">{name}</Label> {count} times
              </li>
            ))}
          </ul>
        </section>
      )}
      <Operations coverage={coverage} />
      <Rows title="Events and decisions" rows={rows.filter(({ count }) => count > 0)} />
    </>
  );
}

const choices = ['called', 'not called', 'all'] as const;

function Operations({ coverage: { operations } }: { readonly coverage: SandboxCoverage }) {
  const { text = '', which = 'called' } = route.value.query;
  const shown = shownOperations(operations, { text, which });
  return (
    <section aria-label="Operations">
      <h2>Operations</h2>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label>
          Filter by operation
          <input
            type="search"
            value={text}
            onInput={({ currentTarget }) => setQuery({ text: currentTarget.value })}
          />
        </label>
        <label>
          Shown
          <select value={which} onChange={({ currentTarget }) => setQuery({ which: currentTarget.value })}>
            {choices.map((choice) => (
              <option key={choice}>{choice}</option>
            ))}
          </select>
        </label>
        <Label>
          {shown.length} {shown.length === 1 ? 'operation' : 'operations'}
        </Label>
      </form>
      <HeatMap operations={shown} />
    </section>
  );
}

/**
 * Operations by statuses. The darker a cell, the more often the operation returned the status. A hollow cell is a
 * documented status that it never returned.
 */
function HeatMap({ operations }: { readonly operations: SandboxCoverage['operations'] }) {
  const { statuses, rows } = coverageMap(operations);
  const shares = new Map(operations.map((each) => [each.operation, shareText(each)]));
  return (
    <div class="table">
      <table class="heat" aria-label="Operations by statuses">
        <thead>
          <tr>
            <th scope="col">Operation</th>
            {statuses.map((status) => (
              <th scope="col" key={status}>
                {status}
              </th>
            ))}
            <th scope="col" class="share">
              Used
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ operation, cells }) => (
            <tr key={operation}>
              <th scope="row">
                <a href={hrefOf('coverage', [operation], route.value.query)}>{operation}</a>
              </th>
              {cells.map((cell, index) => (
                <td
                  key={statuses[index]}
                  class={cell === undefined ? '' : `heat-${strengthOf(cell.count)}`}
                  title={cell === undefined ? '' : `${operation} ${statuses[index]}: ${cell.count} times`}
                >
                  {cell?.count}
                </td>
              ))}
              <td class="share">{shares.get(operation)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface OneProps {
  readonly operation: string;
  readonly rows: readonly SandboxCoverageRow[];
}

function One({ operation, rows }: OneProps) {
  const used = rows.filter(({ count }) => count > 0);
  const unused = rows.filter(({ count }) => count === 0);
  return (
    <>
      <p>
        <a class="back" href={hrefOf('coverage', [], route.value.query)}>
          All operations
        </a>
      </p>
      <h2>{operation}</h2>
      <div class="actions">
        <a class="button" href={hrefOf('requests', [], { text: operation })}>
          Its requests
        </a>
        <a class="button" href={hrefOf('api', [operation], { text: operation })}>
          Send one
        </a>
      </div>
      <Rows title="Used" rows={used} />
      <Rows title="Not used" rows={unused} />
    </>
  );
}

function Rows({ title, rows }: { readonly title: string; readonly rows: readonly SandboxCoverageRow[] }) {
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      {rows.length === 0 && <p class="empty">Nothing.</p>}
      <ul>
        {rows.map(({ dimension, name, count }) => (
          <li key={`${dimension} ${name}`}>
            {name}
            {count > 0 && `, ${count} times`}
          </li>
        ))}
      </ul>
    </section>
  );
}
