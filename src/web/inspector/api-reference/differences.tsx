import { control } from '../control.ts';
import { Prose } from '../parts/prose.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';

/** The simulated parts of an operation, and the choices that Custos made where the specification is silent. */
export function Differences({ operation }: { readonly operation: string }) {
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
