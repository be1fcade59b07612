//! Reads Zotero's own database, one row per bibliographic item, with the columns of Zotero's CSV export.
//! The database spreads an item over a dozen tables whose single rows mean nothing by themselves.

use super::schema::SqliteTable;

/// Tables by which a Zotero database is recognized, and which the query reads.
const TABLES: &[&str] = &[
    "creators",
    "creatorTypes",
    "deletedItems",
    "fields",
    "itemAttachments",
    "itemCreators",
    "itemData",
    "itemDataValues",
    "itemTags",
    "itemTypes",
    "items",
    "tags",
];

pub(super) fn is_library(tables: &[SqliteTable]) -> bool {
    let has = |name: &&str| tables.iter().any(|table| table.name == *name);
    TABLES.iter().all(has)
}

/// One row per item that is not in the trash. Attachments, notes and annotations belong to items.
pub(super) const ITEMS_QUERY: &str = "\
WITH item_values AS (
  SELECT d.itemID, f.fieldName AS name, v.value
  FROM itemData d JOIN fields f ON f.fieldID = d.fieldID JOIN itemDataValues v ON v.valueID = d.valueID
), people AS (
  SELECT c.itemID, c.orderIndex AS at, t.creatorType AS role,
    CASE WHEN coalesce(p.firstName, '') = '' THEN p.lastName ELSE p.lastName || ', ' || p.firstName END AS name
  FROM itemCreators c JOIN creators p ON p.creatorID = c.creatorID
    JOIN creatorTypes t ON t.creatorTypeID = c.creatorTypeID
)
SELECT i.key AS \"Key\", t.typeName AS \"Item Type\",
  (SELECT value FROM item_values s WHERE s.itemID = i.itemID AND name IN ('title', 'caseName', 'subject', 'nameOfAct') LIMIT 1) AS \"Title\",
  (SELECT group_concat(name, '; ' ORDER BY at) FROM people p WHERE p.itemID = i.itemID AND role <> 'editor') AS \"Author\",
  (SELECT group_concat(name, '; ' ORDER BY at) FROM people p WHERE p.itemID = i.itemID AND role = 'editor') AS \"Editor\",
  (SELECT value FROM item_values s WHERE s.itemID = i.itemID AND name = 'date') AS \"Date\",
  (SELECT value FROM item_values s WHERE s.itemID = i.itemID AND name IN ('publicationTitle', 'bookTitle', 'proceedingsTitle', 'websiteTitle', 'blogTitle') LIMIT 1) AS \"Publication Title\",
  (SELECT value FROM item_values s WHERE s.itemID = i.itemID AND name = 'abstractNote') AS \"Abstract Note\",
  (SELECT value FROM item_values s WHERE s.itemID = i.itemID AND name = 'DOI') AS \"DOI\",
  (SELECT value FROM item_values s WHERE s.itemID = i.itemID AND name = 'url') AS \"Url\",
  (SELECT value FROM item_values s WHERE s.itemID = i.itemID AND name = 'publisher') AS \"Publisher\",
  (SELECT value FROM item_values s WHERE s.itemID = i.itemID AND name = 'language') AS \"Language\",
  (SELECT group_concat(g.name, '; ') FROM itemTags u JOIN tags g ON g.tagID = u.tagID WHERE u.itemID = i.itemID) AS \"Manual Tags\",
  (SELECT group_concat(replace(a.path, 'storage:', ''), '; ') FROM itemAttachments a
    WHERE a.parentItemID = i.itemID AND a.path IS NOT NULL) AS \"File Attachments\"
FROM items i JOIN itemTypes t ON t.itemTypeID = i.itemTypeID
WHERE t.typeName NOT IN ('attachment', 'note', 'annotation') AND i.itemID NOT IN (SELECT itemID FROM deletedItems)
ORDER BY i.itemID";
