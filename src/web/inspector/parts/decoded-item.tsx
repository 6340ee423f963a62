import type { DecodedItem as Item } from '../../../sandbox/generated/schemas.ts';
import { Fact } from './fact.tsx';

/** A decoded call or event with its arguments. */
export function DecodedItem({ title, item }: { readonly title: string; readonly item: Item }) {
  return (
    <>
      <h3>{title}</h3>
      <dl>
        {item.arguments.map(({ name, type, value }, index) => (
          <Fact key={index} name={name === '' ? type : name}>
            {value}
          </Fact>
        ))}
      </dl>
    </>
  );
}
