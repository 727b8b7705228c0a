module bareclient

go 1.26
