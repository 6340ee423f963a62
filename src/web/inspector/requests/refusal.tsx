import type { RecordedExchange } from '../../../sandbox/generated/schemas.ts';
import { Fact } from '../parts/fact.tsx';
import { Prose } from '../parts/prose.tsx';

/** Why a request was refused, with its evidence. Nothing for a request that was not. */
export function Refusal({ exchange: { why } }: { readonly exchange: RecordedExchange }) {
  if (why === null) return null;
  const evidence = Object.entries(why.evidence).filter(([, value]) => value !== null);
  return (
    <section class="note bad why" aria-label="Why it was refused">
      <h3>{why.kind.replaceAll('_', ' ')}</h3>
      <Prose text={why.hint} />
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
